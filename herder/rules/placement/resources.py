"""Room: processors, memory, the number of pods, and whatever else a node offers by the piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np

from herder.api.quantity import BINARY_SI, DECIMAL_SI, of, of_milli
from herder.rules.matching.resources import CPU, PODS
from herder.rules.placement.columns import Mask, Scores
from herder.rules.placement.events import Event, What
from herder.rules.placement.needs import MEMORY, Needs
from herder.rules.placement.rule import BEST, Refusal, Rule
from herder.rules.placement.snapshot import Snapshot

TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient {}"
# What people write with Mi and Gi.
BINARY = (MEMORY, "ephemeral-storage", "hugepages-")


Scoring = Literal["LeastAllocated", "MostAllocated"]
SCORINGS: tuple[Scoring, ...] = ("LeastAllocated", "MostAllocated")


class Resources(Rule):
    """`scoring`, in kube-scheduler's words: the emptier the better, so that pods share what there is; or the fuller the better, so
    that nodes become empty and can be switched off."""

    name = "resources"
    listens = frozenset({What.NODE_CAME, What.NODE_CHANGED, What.POD_WENT})

    def __init__(self, scoring: Scoring = "LeastAllocated") -> None:
        self._full = scoring == "MostAllocated"

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        refusals: list[Refusal] = []
        for name, amount in _wanted(pod):
            free = snapshot.nodes.free.get(name)
            lacking = snapshot.nodes.alive if free is None else free < amount
            refusals.append(Refusal(_reason(name), lacking))
        return refusals

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        for row in rows:
            yield [_lacking(snapshot, name, row, amount) for name, amount in _wanted(pod) if not _has(snapshot, name, row, amount)]

    def score(self, pod: Needs, snapshot: Snapshot, fitting: Mask) -> Scores | None:
        """The emptier (or fuller) the better, and the better balanced the better; each counts as much."""
        cpu, memory = _share(snapshot, CPU, 0, pod.counted[0]), _share(snapshot, MEMORY, 1, pod.counted[1])
        if cpu is None or memory is None:
            return None
        before, after = (one - other for one, other in zip(cpu, memory, strict=True))
        taken = (cpu[1] + memory[1]) * (BEST / 2)
        balance = np.abs(before) - np.abs(after)
        return (taken if self._full else BEST - taken) + balance * (BEST / 4) + 0.75 * BEST

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        """Only where it would find room now: many pods may wait for room, and few places become free at a time."""
        row = snapshot.nodes.rows.get(event.node)
        return row is not None and all(_has(snapshot, name, row, amount) for name, amount in _wanted(pod))


def fits_without(pod: Needs, snapshot: Snapshot, below: int) -> Mask:
    """Where there would be room without the pods whose priority is below this one."""
    mask = snapshot.nodes.alive.copy()
    lower = [columns for priority, columns in snapshot.by_priority.items() if priority < below]
    for name, amount in _wanted(pod):
        free = snapshot.nodes.free.get(name)
        if free is None:
            return np.zeros_like(mask)
        held = sum((columns[name] for columns in lower if name in columns), np.zeros_like(free))
        mask &= free + held >= amount
    return mask


def _wanted(pod: Needs) -> Iterator[tuple[str, int]]:
    return ((name, amount) for name, amount in pod.requests.items() if amount)


def _has(snapshot: Snapshot, name: str, row: int, amount: int) -> bool:
    free = snapshot.nodes.free.get(name)
    return free is not None and int(free[row]) >= amount


def _lacking(snapshot: Snapshot, name: str, row: int, amount: int) -> str:
    columns = (snapshot.nodes.free, snapshot.nodes.allocatable)
    free, offered = (max(int(column[name][row]), 0) if name in column else 0 for column in columns)
    return f"{_reason(name)}: {_told(name, amount)} requested, {_told(name, free)} of {_told(name, offered)} free"


def _told(name: str, amount: int) -> str:
    if name == CPU:
        return str(of_milli(amount))
    return str(of(amount, BINARY_SI if name.startswith(BINARY) else DECIMAL_SI))


def _reason(name: str) -> str:
    return TOO_MANY_PODS if name == PODS else INSUFFICIENT.format(name)


def _share(snapshot: Snapshot, name: str, which: int, more: int) -> tuple[Scores, Scores] | None:
    """How much of it is taken, without and with the pod; all of it where there is none."""
    offered = snapshot.nodes.allocatable.get(name)
    if offered is None:
        return None
    part = 1.0 / np.maximum(offered, 1)
    used = snapshot.counted[which]
    return np.minimum(used * part, 1.0), np.minimum((used + more) * part, 1.0)
