"""Places pods that ask for us: looks at all nodes, assumes the choice, binds.

A first version, small on purpose: it knows room, labels, taints, cordons, and where volumes are.
"""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.core import Node, Pod
from herder.api.world import timestamp
from herder.kube.cache import Change, Stored
from herder.kube.client import STRATEGIC_PATCH
from herder.kube.controller import AGAIN, DONE, Result, Work
from herder.kube.enqueue import controlled_by
from herder.kube.errors import Conflict, NotFound
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import CLAIMS, INSTANCES, NODES, PODS, VOLUMES, Key
from herder.rules.matching.resources import Amounts, pod_requests
from herder.rules.placement import Candidate, Disks, claims_of, disks_of, place

# They decide one after the other all the same: nothing is waited for between a look at the nodes and the choice. What they wait
# for together is the API server.
WORKERS = 16
FINISHED = ("Succeeded", "Failed")
BINDING = {"apiVersion": "v1", "kind": "Binding"}


class Scheduler:
    name = "scheduler"

    def __init__(self, kit: Kit, names: tuple[str, ...]) -> None:
        self._client = kit.client
        self._world = kit.world
        self._recorder = kit.recorder
        self._names = names
        self._pods = kit.caches.of(PODS)
        self._nodes = kit.caches.of(NODES)
        self._instances = kit.caches.of(INSTANCES)
        self._claims = kit.caches.of(CLAIMS)
        self._volumes = kit.caches.of(VOLUMES)
        # Bound by us and not yet seen so: it holds its room already.
        self._assumed: dict[Key, str] = {}
        # Who holds room where, and how much of each node is taken by all of them.
        self._holders: dict[Key, tuple[str, Amounts]] = {}
        self._used: dict[str, Amounts] = {}
        # Found no node. Looked at again when there is more room, or another node.
        self._waiting: dict[Key, None] = {}

    @classmethod
    def start(cls, kit: Kit, names: tuple[str, ...]) -> Work:
        self, queue = cls(kit, names), kit.queue(cls.name)
        self._pods.subscribe(lambda change: self._pod_changed(change, queue))
        self._nodes.subscribe(lambda change: self._node_changed(change, queue))
        for cache in (self._claims, self._volumes):
            cache.subscribe(lambda change: self._disk_changed(queue))
        return kit.work(self, queue, WORKERS)

    def _pod_changed(self, change: Change[Pod], queue: Queue) -> None:
        pod = change.new.view if change.new is not None else None
        if pod is None or pod.spec.node_name:
            self._assumed.pop(change.key, None)
            self._waiting.pop(change.key, None)
            self._release(change.key)
        if pod is not None and pod.spec.node_name and pod.status.phase not in FINISHED:
            self._hold(change.key, pod.spec.node_name, pod)
        if pod is None or pod.status.phase in FINISHED:
            self._room_is_free(queue)
        elif self._is_ours(pod):
            queue.add(change.key)

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        if change.new is not None and (change.old is None or _offer(change.old) != _offer(change.new)):
            self._room_is_free(queue)

    def _disk_changed(self, queue: Queue) -> None:
        for key in tuple(self._waiting):
            stored = self._pods.stored(key)
            if stored is not None and claims_of(stored.view):
                del self._waiting[key]
                queue.add(key)

    def _room_is_free(self, queue: Queue) -> None:
        for key in tuple(self._waiting):
            del self._waiting[key]
            queue.add(key)

    def _hold(self, key: Key, node: str, pod: Pod) -> None:
        asked = pod_requests(pod)
        self._holders[key] = (node, asked)
        _count(self._used.setdefault(node, {}), asked, 1)

    def _release(self, key: Key) -> None:
        if held := self._holders.pop(key, None):
            _count(self._used[held[0]], held[1], -1)

    def _is_ours(self, pod: Pod) -> bool:
        return not pod.spec.node_name and pod.spec.scheduler_name in self._names and not pod.spec.scheduling_gates

    async def reconcile(self, key: Key) -> Result:
        stored = self._pods.stored(key)
        if stored is None or key in self._assumed or not self._is_ours(stored.view) or stored.deleting:
            return DONE
        if not self._is_wanted(stored):
            # Made by a request that was late; or we know of the pod before we know of its instance.
            return AGAIN
        spec = msgspec.json.decode(stored.raw)["spec"]
        found = place(stored.view, spec, self._candidates(), self._disks(stored))
        if not found.node:
            self._waiting[key] = None
            await self._say_why(stored, found.message)
        else:
            await self._bind(stored, found.node)
        return DONE

    def _is_wanted(self, stored: Stored[Pod]) -> bool:
        """A guest's pod whose instance is gone must not run: there may be another instance by now. It is about to be removed."""
        owner = stored.controller
        key = next(iter(controlled_by(INSTANCES)(stored)), None)
        if key is None or owner is None:
            return True
        instance = self._instances.stored(key)
        return instance is not None and instance.uid == owner.uid and not instance.deleting

    def _disks(self, stored: Stored[Pod]) -> Disks:
        def volume(name: str) -> dict[str, Any] | None:
            raw = self._volumes.raw(Key("", name))
            return msgspec.json.decode(raw) if raw is not None else None

        return disks_of(stored.view, lambda name: self._claims.get(Key(stored.key.namespace, name)), volume)

    def _candidates(self) -> list[Candidate]:
        return [Candidate(node, self._used.get(node.name, {})) for node in self._nodes.list()]

    async def _bind(self, stored: Stored[Pod], node: str) -> None:
        key = stored.key
        self._assumed[key] = node
        self._hold(key, node, stored.view)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {**BINDING, "metadata": {"name": key.name, "namespace": key.namespace, "uid": stored.uid}, "target": target}
        try:
            await self._client.post(PODS, key, "binding", binding)
        except (NotFound, Conflict):
            # Gone, another one, or bound by someone else: the watch will tell.
            self._not_bound(key)
            return
        except BaseException:
            self._not_bound(key)
            raise
        self._recorder.normal(stored.view, "Scheduled", f"Successfully assigned {key} to {node}", action="Binding")

    def _not_bound(self, key: Key) -> None:
        """Unless the watch has said by now where it is."""
        if self._assumed.pop(key, None) is not None:
            self._release(key)

    async def _say_why(self, stored: Stored[Pod], message: str) -> None:
        known = next((one for one in stored.view.status.conditions if one.type == "PodScheduled"), None)
        if known is not None and known.status == "False" and known.message == message:
            return
        since = known.last_transition_time if known is not None and known.status == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": timestamp(since.timestamp() if since else self._world.now()),
        }
        patch = {"metadata": {"uid": stored.uid}, "status": {"conditions": [condition]}}
        await self._client.patch(PODS, stored.key, patch, subresource="status", content_type=STRATEGIC_PATCH)
        self._recorder.warning(stored.view, "FailedScheduling", message, action="Scheduling")


def _count(total: Amounts, asked: Amounts, times: int) -> None:
    for name, value in asked.items():
        total[name] = total.get(name, 0) + times * value


def _offer(stored: Stored[Node]) -> tuple[object, ...]:
    """What of a node can make room for a pod: heartbeats do not."""
    node = stored.view
    taints = [(taint.key, taint.value, taint.effect) for taint in node.spec.taints]
    return (node.labels, node.spec.unschedulable, taints, node.status.allocatable)
