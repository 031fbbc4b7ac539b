"""How many replicas of a workload are missed."""

from typing import Any

import pytest

from herder.rules.jobs.replicas import PodState, Replicas, count_replicas, holds_guest, is_kept_off, pod_state
from tests.unit.rules.jobs.objects import pod, reference, thing


def states(ready: int = 0, unready: int = 0, terminating: int = 0) -> list[PodState]:
    return [
        *(PodState(f"r{number}", f"r{number}", ready=True) for number in range(ready)),
        *(PodState(f"u{number}", f"u{number}") for number in range(unready)),
        *(PodState(f"t{number}", f"t{number}", ready=True, terminating=True) for number in range(terminating)),
    ]


@pytest.mark.parametrize(
    ("expected", "pods", "missing", "unavailable"),
    [
        (3, states(ready=3), 0, 0),
        (3, states(ready=2, unready=1), 0, 1),
        # A replica that does not exist, and one that goes with nobody in its place yet.
        (3, states(ready=2), 1, 1),
        (3, states(ready=2, terminating=1), 1, 1),
        # Its replacement is there: the gap is that one, and not two.
        (3, states(ready=2, unready=1, terminating=1), 0, 1),
        (3, states(ready=3, terminating=2), 0, 0),
        (3, [], 3, 3),
        (0, states(ready=1), 0, 0),
        (2, states(ready=3), 0, 0),
        # Nobody says how many: as many as there are.
        (None, states(ready=2, unready=1), 0, 1),
        (None, states(ready=2, terminating=1), 1, 1),
    ],
)
def test_not_ready_missing_and_leaving_replicas_are_unavailable(
    expected: int | None, pods: list[PodState], missing: int, unavailable: int
) -> None:
    replicas = count_replicas(expected, pods)
    assert (replicas.missing, replicas.unavailable, replicas.pods) == (missing, unavailable, len(pods))


@pytest.mark.parametrize(
    ("migrating", "unavailable"),
    [
        ([], 2),
        (["r0"], 3),
        (["r0", "r0", "r1"], 4),
        # Who is not ready, goes, or has gone is missed already.
        (["u0"], 2),
        (["t0"], 2),
        (["of-another-workload"], 2),
        (["r0", "u0", "t0"], 3),
    ],
)
def test_a_replica_that_migrates_and_is_missed_already_is_counted_once(migrating: list[str], unavailable: int) -> None:
    replicas = count_replicas(4, states(ready=2, unready=1, terminating=1))
    assert replicas.unavailable_with(migrating) == unavailable
    assert replicas.unavailable_with(iter(migrating)) == unavailable


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (pod("p"), PodState("p", "uid-p", ready=True)),
        (pod("p", ready=False), PodState("p", "uid-p")),
        (pod("p", deletionTimestamp="2025-06-15T15:06:40Z"), PodState("p", "uid-p", ready=True, terminating=True)),
        (pod("p", phase="Succeeded"), None),
        (pod("p", phase="Failed"), None),
    ],
)
def test_a_pod_that_has_ended_is_nobodys_replica(given: Any, state: PodState | None) -> None:
    assert pod_state(given) == state


def test_a_workload_without_pods_has_nobody() -> None:
    assert count_replicas(0, []) == Replicas()


def test_of_a_guest_that_is_moved_only_the_pod_in_which_it_runs_is_a_replica() -> None:
    before, after = pod("launcher-a"), pod("launcher-b", labels={"kubevirt.io/migrationJobUID": "m"})
    moving = thing("VirtualMachineInstance", "vm", status={"launcherPodName": "launcher-a"})
    assert [holds_guest(one, moving) for one in (before, after)] == [True, False]
    moved = thing("VirtualMachineInstance", "vm", status={"launcherPodName": "launcher-b"})
    assert [holds_guest(one, moved) for one in (before, after)] == [False, True]
    starting = thing("VirtualMachineInstance", "vm")
    assert [holds_guest(one, starting) for one in (before, after)] == [True, False]


@pytest.mark.parametrize(
    ("spec", "phase", "off"),
    [
        ({"running": True}, None, False),
        ({"running": False}, None, True),
        ({"running": False}, "Running", False),
        ({"running": True}, "Running", False),
        ({"running": True}, "Failed", False),
    ],
)
def test_a_machine_that_people_keep_off_is_not_missed(spec: dict[str, Any], phase: str | None, off: bool) -> None:
    machine = thing("VirtualMachine", "vm", spec=spec)
    owner = reference("VirtualMachine", "vm")
    instance = None if phase is None else thing("VirtualMachineInstance", "vm", owner, status={"phase": phase})
    assert is_kept_off(machine, instance) is off
