"""How many may migrate at once: in all, from one node, in one namespace."""

from __future__ import annotations

from collections import Counter

from herder.api import reasons
from herder.rules.jobs.arbitration.limits.limit import Limit, Wait
from herder.rules.jobs.arbitration.snapshot import ArbitrationSnapshot, CandidatePod, Migrating


class GlobalLimit(Limit):
    def __init__(self, snapshot: ArbitrationSnapshot) -> None:
        super().__init__(snapshot)
        self._migrating = 0

    def count(self, migrating: Migrating) -> None:
        self._migrating += 1

    def holds(self, pod: CandidatePod) -> Wait | None:
        most = self.config.max_migrating_globally
        if most is None or self._migrating < most:
            return None
        return Wait(reasons.WAITING_FOR_GLOBAL_LIMIT, f"{_pods(self._migrating)} migrating, and maxMigratingGlobally is {most}")


class NodeLimit(Limit):
    """Of pods that have a node: one that waits for its first place leaves none."""

    def __init__(self, snapshot: ArbitrationSnapshot) -> None:
        super().__init__(snapshot)
        self._migrating: Counter[str] = Counter()

    def count(self, migrating: Migrating) -> None:
        self._migrating[migrating.node] += 1

    def holds(self, pod: CandidatePod) -> Wait | None:
        most, now = self.config.max_migrating_per_node, self._migrating[pod.node]
        if not pod.node or now < most:
            return None
        return Wait(reasons.WAITING_FOR_NODE_LIMIT, f"{_pods(now)} leaving node {pod.node}, and maxMigratingPerNode is {most}")


class NamespaceLimit(Limit):
    def __init__(self, snapshot: ArbitrationSnapshot) -> None:
        super().__init__(snapshot)
        self._migrating: Counter[str] = Counter()

    def count(self, migrating: Migrating) -> None:
        self._migrating[migrating.namespace] += 1

    def holds(self, pod: CandidatePod) -> Wait | None:
        most, now = self.config.max_migrating_per_namespace, self._migrating[pod.namespace]
        if most is None or now < most:
            return None
        message = f"{_pods(now, f' of namespace {pod.namespace}')} migrating, and maxMigratingPerNamespace is {most}"
        return Wait(reasons.WAITING_FOR_NAMESPACE_LIMIT, message)


def _pods(number: int, which: str = "") -> str:
    return f"{number} pod{which} is" if number == 1 else f"{number} pods{which} are"
