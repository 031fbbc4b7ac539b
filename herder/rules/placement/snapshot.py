"""The cluster as the rules see it. Each event changes a few numbers; nothing is built anew for a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from herder.rules.placement.columns import Scores, Whole, longer
from herder.rules.placement.crowds import Crowds
from herder.rules.placement.needs import Needs, Port
from herder.rules.placement.nodes import Nodes, Offer
from herder.rules.placement.standing import Standing
from herder.rules.placement.storage import Storage

PodKey = tuple[str, str]


class Placed(msgspec.Struct, frozen=True):
    needs: Needs
    node: str


class Snapshot:
    def __init__(self) -> None:
        self.nodes = Nodes()
        self.storage = Storage()
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.crowds = Crowds(self.nodes.capacity, self.namespaces)
        self.standing = Standing(self.nodes.capacity, self.namespaces)
        # Processors and memory as nodes are compared by: a pod that asks for nothing counts a little.
        self.counted: tuple[Scores, Scores] = (np.zeros(self.nodes.capacity), np.zeros(self.nodes.capacity))
        # What pods of each priority take of each resource.
        self.by_priority: dict[int, dict[str, Whole]] = {}
        # How many of them ask for it.
        self._asking: Counter[tuple[int, str]] = Counter()
        self.ports: dict[tuple[str, int], dict[int, list[Port]]] = {}
        self._pods: dict[PodKey, Placed] = {}
        # Also of nodes that are not known (yet, or any more).
        self._on: dict[str, dict[PodKey, Needs]] = {}

    # Nodes.

    def put_node(self, offer: Offer) -> None:
        new = offer.name not in self.nodes.rows
        row = self.nodes.put(offer)
        self._grow()
        if new:
            for pod in self._on.get(offer.name, {}).values():
                self._change(pod, row, 1)

    def remove_node(self, name: str) -> None:
        row = self.nodes.rows.get(name)
        if row is None:
            return
        for pod in self._on.get(name, {}).values():
            self._change(pod, row, -1)
        self.nodes.remove(name)

    # Pods that have a node, or are assumed to have one.

    def put_pod(self, pod: Needs, node: str) -> None:
        key = (pod.namespace, pod.name)
        self.remove_pod(key)
        self._pods[key] = Placed(pod, node)
        self._on.setdefault(node, {})[key] = pod
        row = self.nodes.rows.get(node)
        if row is not None:
            self._change(pod, row, 1)

    def remove_pod(self, key: PodKey) -> Placed | None:
        placed = self._pods.pop(key, None)
        if placed is None:
            return None
        here = self._on[placed.node]
        del here[key]
        if not here:
            del self._on[placed.node]
        row = self.nodes.rows.get(placed.node)
        if row is not None:
            self._change(placed.needs, row, -1)
        return placed

    def placed(self, key: PodKey) -> Placed | None:
        return self._pods.get(key)

    def pods_on(self, node: str) -> Iterable[Needs]:
        return self._on.get(node, {}).values()

    # Namespaces.

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Whether that says something new."""
        if self.namespaces.get(name) == labels:
            return False
        if labels is None:
            del self.namespaces[name]
        else:
            self.namespaces[name] = labels
        self.crowds.namespaces_changed()
        self.standing.namespaces_changed()
        return True

    def _change(self, pod: Needs, row: int, by: int) -> None:
        self.nodes.take(row, pod.requests, by)
        self.counted[0][row] += by * pod.counted[0]
        self.counted[1][row] += by * pod.counted[1]
        self.crowds.change(pod, row, by)
        self.standing.change(pod, row, by)
        self._change_priority(pod, row, by)
        for port in pod.ports:
            self._change_port(port, row, by)
        for claim in pod.claims:
            used = (pod.namespace, claim.name)
            self.storage.users[used] += by
            if not self.storage.users[used]:
                del self.storage.users[used]

    def _change_priority(self, pod: Needs, row: int, by: int) -> None:
        columns = self.by_priority.setdefault(pod.priority, {})
        for name, amount in pod.requests.items():
            if name not in columns:
                columns[name] = np.zeros(self.nodes.capacity, dtype=np.int64)
            columns[name][row] += by * amount
            asking = (pod.priority, name)
            self._asking[asking] += by
            if not self._asking[asking]:
                # Whoever makes pods makes up names of resources, too.
                del columns[name], self._asking[asking]
        if not columns:
            del self.by_priority[pod.priority]

    def _change_port(self, port: Port, row: int, by: int) -> None:
        rows = self.ports.setdefault((port.protocol, port.number), {})
        if by > 0:
            rows.setdefault(row, []).append(port)
            return
        rows[row].remove(port)
        if not rows[row]:
            del rows[row]
        if not rows:
            del self.ports[port.protocol, port.number]

    def _grow(self) -> None:
        capacity = self.nodes.capacity
        if len(self.counted[0]) == capacity:
            return
        self.counted = (longer(self.counted[0], capacity), longer(self.counted[1], capacity))
        self.crowds.grow(capacity)
        self.standing.grow(capacity)
        for columns in self.by_priority.values():
            for name, column in columns.items():
                columns[name] = longer(column, capacity)
