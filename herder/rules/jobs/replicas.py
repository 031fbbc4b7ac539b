"""The pods of a workload, and how many of its replicas are missed at this moment."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.rules.machines.wanted import phase_of, wanted
from herder.rules.workloads.pods import FINISHED, is_ready


class PodState(msgspec.Struct, frozen=True, gc=False):
    """What counts of a pod that has not ended."""

    name: str
    uid: str
    ready: bool = False
    terminating: bool = False


class Replicas(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """By uid: another pod of that name is another replica."""

    # Ready, and not told to end.
    available: frozenset[str] = frozenset()
    # There, and not ready.
    unready: frozenset[str] = frozenset()
    # Told to end: who keeps them makes others in their place, or will. They are missed as long as there are none.
    terminating: frozenset[str] = frozenset()
    # Replicas that should be there and are not.
    missing: int = 0

    @property
    def pods(self) -> int:
        """All that are there."""
        return len(self.available) + len(self.unready) + len(self.terminating)

    @property
    def unavailable(self) -> int:
        return len(self.unready) + self.missing

    def unavailable_with(self, migrating: Iterable[str]) -> int:
        """How many would be unavailable without these pods too. One that is missed already is not counted twice: neither who is
        not ready, nor who was evicted and goes, nor the same one named twice."""
        return self.unavailable + len(self.available.intersection(migrating))


def pod_state(pod: Pod) -> PodState | None:
    """None for one that has ended: it is nobody's replica any more."""
    if pod.status.phase in FINISHED:
        return None
    return PodState(pod.name, pod.uid, is_ready(pod), pod.being_deleted)


def count_replicas(expected: int | None, pods: Iterable[PodState]) -> Replicas:
    """`expected`: how many there should be; None where nobody says so: then there should be as many as there are, with those that
    go."""
    available: list[str] = []
    unready: list[str] = []
    terminating: list[str] = []
    for pod in pods:
        (terminating if pod.terminating else available if pod.ready else unready).append(pod.uid)
    there = len(available) + len(unready)
    wanted_now = there + len(terminating) if expected is None else expected
    return Replicas(
        available=frozenset(available),
        unready=frozenset(unready),
        terminating=frozenset(terminating),
        missing=max(0, wanted_now - there),
    )


# --- machines: a replica is a guest, and not each of the pods that it has while it is moved --------------------------------------


def holds_guest(pod: Pod, instance: VirtualMachineInstance | None) -> bool:
    """Of the launcher pods of an instance: the one that its guest runs in, and not one that waits for the guest or was left."""
    known = instance.status.launcher_pod_name if instance is not None and instance.status else None
    return pod.name == known if known else labels.MIGRATION_UID not in pod.labels


def is_kept_off(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> bool:
    """By people's wish, and nothing of it runs: it is not missed."""
    own = instance if instance is not None and instance.controller_uid == machine.uid else None
    alive = own is not None and phase_of(own) not in FINISHED
    return not alive and wanted(machine, own) in ("leave", "stop")
