"""The label by which an autoscaler counts the machines of a pool: on the one pod of each that has the guest."""

from __future__ import annotations

from typing import Protocol

from herder.api import labels, names, registry
from herder.api.core import Pod


class Owner(Protocol):
    """An ownerReference, whoever has read it."""

    @property
    def api_version(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...


def is_pool(owner: Owner | None) -> bool:
    """By the words of the reference: others have kinds of that name, too."""
    return owner is not None and owner.kind == registry.POOL.kind and owner.api_version.rpartition("/")[0] == registry.POOL.group


def pool_label_of(controller: Owner | None, *, standby: bool = False) -> str:
    """The pool that manages a machine; empty where none does. Whoever wrote the reference: what no pool can be called is none. One
    that is awake beside the replicas, to be saved, does nobody's work, and would only spoil the average."""
    if standby or controller is None or not is_pool(controller) or names.label_value(controller.name):
        return ""
    return controller.name


def labelled(pool: str) -> dict[str, str]:
    return {labels.POOL: pool} if pool else {}


def label_change(pod: Pod, pool: str | None) -> dict[str, str | None]:
    """Of the pod that has the guest. None: nobody knows, so it stays as it is."""
    return {} if pool is None or pod.labels.get(labels.POOL, "") == pool else {labels.POOL: pool or None}
