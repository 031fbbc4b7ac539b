"""What all pods that are bound to a node ask for together, kept up with the cache of pods.

More than what they hold: some have not begun, some are about to end. Where all of it fits, each of them has room, and nobody has to
look at each pod of a node whenever one of them is started.
"""

from __future__ import annotations

import msgspec

from herder.api.core import Pod
from herder.kube.cache import Cache, Change, view_of
from herder.kube.resources import Key
from herder.rules.matching.resources import Amounts, pod_requests

FINISHED = ("Succeeded", "Failed")


class Entry(msgspec.Struct, frozen=True):
    uid: str
    node: str
    # Another one where somebody has changed what it asks for.
    generation: int | None
    asked: Amounts


class Booked:
    def __init__(self, pods: Cache[Pod]) -> None:
        self._entries: dict[Key, Entry] = {}
        self._nodes: dict[str, Amounts] = {}
        pods.subscribe(self._changed)

    def on(self, node: str) -> Amounts:
        return self._nodes.get(node, {})

    def _changed(self, change: Change[Pod]) -> None:
        pod = view_of(change.new)
        if pod is None or not pod.spec.node_name or pod.status.phase in FINISHED:
            self._remove(change.key)
            return
        before = self._entries.get(change.key)
        told = (pod.uid, pod.spec.node_name, pod.metadata.generation)
        if before is None or (before.uid, before.node, before.generation) != told:
            self._remove(change.key)
            self._add(change.key, Entry(*told, {name: value for name, value in pod_requests(pod).items() if value}))

    def _add(self, key: Key, entry: Entry) -> None:
        self._entries[key] = entry
        total = self._nodes.setdefault(entry.node, {})
        for name, value in entry.asked.items():
            total[name] = total.get(name, 0) + value

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        total = self._nodes[entry.node]
        for name, value in entry.asked.items():
            total[name] -= value
            if not total[name]:
                del total[name]
        if not total:
            del self._nodes[entry.node]
