"""What a person is told who asks for a migration of a guest that does not run."""

import pytest

from herder.rules.migration.preflight import why_no_guest, why_no_instance
from tests.unit.rules.machines import instance, instance_view, machine, machine_view


def test_a_machine_that_is_off_is_to_be_started_first() -> None:
    off = machine_view(machine({"printableStatus": "Stopped"}))
    assert why_no_instance(off) == "VirtualMachine web is Stopped, so there is no guest to move; `herder start web` starts it"


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("Unschedulable", "`herder explain placement vm/web` shows each node; ask for less, or add or free a node"),
        ("MigratabilityLevelNotReached", "`herder explain migratability` shows the level of each node"),
        ("MissingSecret", "`kubectl describe vmi web` says more"),
    ],
)
def test_a_guest_that_does_not_start_comes_with_why_and_what_to_do(reason: str, advice: str) -> None:
    said = why_no_guest(instance_view(instance("Scheduling", reason=reason, message="0/2 nodes.")))
    assert said == f"the guest of web does not run, so there is nothing to move: {reason}: 0/2 nodes; {advice}"


@pytest.mark.parametrize("phase", ["Pending", "Scheduling", "Scheduled", "Running"])
def test_a_guest_that_will_run_is_moved_then(phase: str) -> None:
    assert why_no_guest(instance_view(instance(phase))) == ""
    assert why_no_guest(instance_view(instance(phase, reason="WaitingForDataVolume", message="12%"))) == ""
