"""The Nodes that pods are bound to, as controllers have to know them before they decide that nothing runs there any more; and Nodes
that are deleted and whose agents will not let them go, because they are silent."""

from __future__ import annotations

from collections.abc import Iterable

from herder.api.core import Node, Pod
from herder.api.labels import NODE_FINALIZER
from herder.controllers.hands import Hands
from herder.kube.client import STRATEGIC_PATCH
from herder.kube.controller import DONE, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.errors import NotFound
from herder.kube.kit import Kit
from herder.kube.resources import NODES, Key
from herder.rules.node_deletion import plan_deletion


class BoundNodes:
    """A Node that is gone means that nothing runs there: its pods are removed by force, and started elsewhere. That one is gone is
    therefore asked of the API server itself; a cache may not have heard of it yet."""

    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._nodes = kit.caches.of(NODES)

    async def of(self, pods: Iterable[Pod]) -> dict[str, Node]:
        """Those that the pods are bound to, as far as they exist."""
        names = dict.fromkeys(pod.spec.node_name for pod in pods if pod.spec.node_name)
        return {name: node for name in names if (node := await self.find(name)) is not None}

    async def find(self, name: str) -> Node | None:
        """None where there is none for certain."""
        return self._nodes.get(Key("", name)) or await self._client.find(NODES, Key("", name))


class NodeDeletions:
    """Takes the finalizer of an agent off a Node that is deleted while it is silent: whoever does that vouches for it that nothing
    runs there. On both engines; a live agent does it by itself."""

    name = "node-deletions"

    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._hands = Hands(kit.client, kit.recorder)
        self._nodes = kit.caches.of(NODES)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._nodes, queue, lambda stored: (stored.key,) if b'"deletionTimestamp"' in stored.raw else ())
        return kit.work(self, queue, of=self._nodes)

    async def reconcile(self, key: Key) -> Result:
        stored = self._nodes.stored(key)
        plan = plan_deletion(stored.view) if stored is not None else None
        if stored is None or plan is None:
            return DONE
        # Only as it was seen: an agent that is back has said so in between.
        metadata = {"uid": stored.uid, "resourceVersion": str(stored.version)}
        patch = {"metadata": {**metadata, "$deleteFromPrimitiveList/finalizers": [NODE_FINALIZER]}}
        try:
            await self._client.patch(NODES, key, patch, content_type=STRATEGIC_PATCH)
        except NotFound:
            return DONE
        self._hands.tell(stored.view, (plan,))
        return DONE
