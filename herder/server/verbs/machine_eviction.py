"""The eviction of a pod that a virtual machine runs in. On other clusters our webhook gives the same answer."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from herder.api import labels, registry
from herder.api.core import Pod
from herder.api.kinds import KubeVirt, VirtualMachineInstance
from herder.api.registry import KindInfo
from herder.rules.configuration import NAME, NAMESPACE, cluster_migration_settings
from herder.rules.evictions import judge_eviction
from herder.server import status
from herder.server.engine import Engine
from herder.server.served import Served
from herder.server.store.records import key_of

Document = dict[str, Any]
V = TypeVar("V")


async def check_machine(engine: Engine, document: Document, dry_run: bool) -> None:
    """Refuses with 429, as a budget would: who drains a node tries again later, and by then the guest has moved."""
    pod = msgspec.convert(document, Pod)
    owner = next((one for one in pod.metadata.owner_references or () if one.controller), None)
    if owner is None or owner.kind != registry.INSTANCE.kind:
        return
    instance = _find(engine, registry.INSTANCE, VirtualMachineInstance, pod.namespace, owner.name)
    cluster = cluster_migration_settings(_find(engine, registry.SETTINGS, KubeVirt, NAMESPACE, NAME))
    verdict = judge_eviction(pod, instance, cluster.eviction_strategy)
    if not verdict.refused:
        return
    if verdict.evacuate and not dry_run:
        await _mark(engine, pod.namespace, owner.name, verdict.evacuate)
    details = {"causes": [{"reason": "EvictionStrategy", "message": verdict.refused}]}
    raise status.ApiError(429, "TooManyRequests", verdict.refused, details)


async def _mark(engine: Engine, namespace: str, name: str, node: str) -> None:
    def marked(instance: Document) -> Document:
        instance["metadata"].setdefault("annotations", {})[labels.EVACUATE] = node
        return instance

    served = _served(engine, registry.INSTANCE)
    assert served is not None, "its instance was found"
    await engine.writes.amend(served, key_of(namespace, name), marked, False)


def _find(engine: Engine, info: KindInfo, view: type[V], namespace: str, name: str) -> V | None:
    """What is not there, and what is not as it should be, both count as nothing."""
    served = _served(engine, info)
    record = engine.store.latest(served.table, key_of(namespace, name)) if served is not None else None
    if record is None:
        return None
    try:
        return msgspec.json.decode(record.raw, type=view)
    except msgspec.MsgspecError:
        return None


def _served(engine: Engine, info: KindInfo) -> Served | None:
    return engine.registry.find(info.group, info.version, info.plural)
