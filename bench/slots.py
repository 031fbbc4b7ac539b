"""When a place was free for a migration that waited, and how long it stayed so: reckoned from what a watch shows."""

from __future__ import annotations

from collections import Counter

from herder.rules.migration import FINISHED, Limits

PENDING = "Pending"


class Slots:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # By name of the migration: phase, and the node that it leaves.
        self._known: dict[str, tuple[str, str]] = {}
        # Since when each free place could have been used.
        self._free: list[float] = []
        self.idle: list[float] = []
        self.finished: Counter[str] = Counter()

    def seen(self, name: str, phase: str, source: str, now: float) -> None:
        """`source` counts until the migration says where it leaves."""
        before = self._known.get(name, ("", ""))[0]
        if before in FINISHED or before == phase:
            return
        if phase in FINISHED:
            self.finished[phase] += 1
        self._known[name] = (phase, source)
        if before == PENDING and phase not in FINISHED and self._free:
            self.idle.append(now - self._free.pop(0))
        self._reckon(now)

    def _reckon(self, now: float) -> None:
        waiting = Counter(source for phase, source in self._known.values() if phase == PENDING)
        leaving = Counter(source for phase, source in self._known.values() if phase not in (PENDING, *FINISHED))
        by_node = sum(min(count, max(0, self._limits.outbound - leaving[source])) for source, count in waiting.items())
        could = max(0, min(self._limits.cluster - leaving.total(), by_node))
        self._free += [now] * (could - len(self._free))
        del self._free[could:]
