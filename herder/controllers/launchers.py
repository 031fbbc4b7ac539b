"""The pods that guests run in. They are found among all pods, which other controllers know anyway: to be told of them a second time
would cost both sides more than to look over the others."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from herder.api import labels
from herder.api.core import Pod
from herder.kube.cache import Cache, Index, Stored, owned
from herder.kube.client import Client
from herder.kube.resources import PODS, key_of


def _is_launcher(stored: Stored[Any]) -> bool:
    return stored.labels.get(labels.APP) == labels.LAUNCHER


def _instances(stored: Stored[Any]) -> Iterable[str]:
    """Other pods may name an instance as an owner, so that they go with it: they are no business of ours."""
    return [owned(stored.key.namespace, owner.uid) for owner in stored.owners] if _is_launcher(stored) else ()


# By the namespace and the uid of the instance (`owned`): pods of other namespaces may say what they like.
LAUNCHERS_OF: Index[Any] = Index("launched instance", _instances, attrgetter("owners", "labels"))
LAUNCHERS_IN: Index[Any] = Index(
    "launcher's namespace", lambda stored: (stored.key.namespace,) if _is_launcher(stored) else (), attrgetter("labels")
)


async def has_changed(client: Client, pods: Cache[Pod], pod: Pod) -> bool:
    """Whether the pod is another one by now than the cache has shown. When the answer is yes, the cache shows that."""
    live = await client.find(PODS, key_of(pod))
    if live is None or live.metadata.resource_version == pod.metadata.resource_version:
        return False
    await pods.wait_seen(live.metadata.resource_version or "")
    return True
