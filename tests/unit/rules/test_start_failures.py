"""What counts as a failure to start, which pools heal, what only as a crash, and what as neither."""

from typing import Any

import pytest

from herder.rules.machines import MachinePlan, MachineSnapshot, plan_machine
from tests.unit.rules.machines import NOW, Json, instance, instance_view, later, machine, machine_view

RAN_AND_CRASHED = (-30.0, -1.0)
RAN_FOR_LONG = (-4000.0, -1.0)
WITH_PROBE: Json = {"domain": {}, "livenessProbe": {"guestAgentPing": {}}}
FAILED_TWICE: Json = {"consecutiveFailCount": 2, "lastFailedVMIUID": "one", "firstFailureTimestamp": later(-50)}


def plan(known: Json | None, child: Json, **spec: Any) -> MachinePlan:
    document = machine({"startFailure": known} if known else None, **spec)
    return plan_machine(MachineSnapshot(machine_view(document), document, instance_view(child), {}), NOW)


def counted(known: Json | None, child: Json, **spec: Any) -> tuple[int, int] | None:
    """Failures to start and crashes in a row."""
    failure = plan(known, child, **spec).status.get("startFailure")
    return (failure["consecutiveFailCount"], failure["consecutiveCrashCount"]) if failure else None


def probed(phase: str, alive: bool | None, ran: tuple[float, float] | None = RAN_AND_CRASHED, **more: Any) -> Json:
    """An instance with a liveness probe; `alive` is whether it has passed, None where that was never said."""
    said = [{"type": "Alive", "status": "True" if alive else "False"}] if alive is not None else []
    return instance(phase, spec=WITH_PROBE, ran=ran, conditions=said, **more)


def told(made: MachinePlan) -> list[str]:
    return [event.message for event in made.events if event.reason == "CrashedEarly"]


@pytest.mark.parametrize("ran", [RAN_AND_CRASHED, RAN_FOR_LONG])
@pytest.mark.parametrize("reason", ["GuestCrashed", "LivenessProbeNeverPassed"])
def test_an_instance_that_ends_before_its_first_passed_liveness_probe_has_failed_to_start(
    reason: str, ran: tuple[float, float]
) -> None:
    failed = probed("Failed", False, ran, reason=reason)
    assert counted(FAILED_TWICE, failed) == (3, 0)
    assert plan(FAILED_TWICE, failed).status["startFailure"]["firstFailureTimestamp"] == later(-50)
    assert not told(plan(None, failed))


def test_one_that_shuts_itself_down_before_that_has_failed_to_start_if_it_is_always_to_run() -> None:
    assert counted(FAILED_TWICE, probed("Succeeded", False)) == (3, 0)
    assert counted(None, probed("Succeeded", False), runStrategy="RerunOnFailure") is None


def test_one_that_lived_and_then_crashed_did_start() -> None:
    assert counted(FAILED_TWICE, probed("Failed", True, reason="GuestCrashed")) == (0, 1)
    assert counted(FAILED_TWICE, probed("Failed", True, reason="LivenessProbeFailed")) == (0, 1)
    assert counted(FAILED_TWICE, probed("Failed", True, RAN_FOR_LONG, reason="LivenessProbeFailed")) is None


def test_an_early_crash_without_a_liveness_probe_is_only_a_crash_and_an_event_says_so_once_per_series() -> None:
    first = plan(FAILED_TWICE, instance("Failed", uid="two", ran=RAN_AND_CRASHED, reason="GuestCrashed"))
    failure = first.status["startFailure"]
    assert (failure["consecutiveFailCount"], failure["consecutiveCrashCount"]) == (0, 1)
    (message,) = told(first)
    assert "crashed 29 s after it had started (GuestCrashed)" in message
    assert "without a livenessProbe that is not counted as a failure to start, so no pool heals it" in message
    seen_again = plan(failure, instance("Failed", uid="two", ran=RAN_AND_CRASHED, reason="GuestCrashed"))
    second = plan(failure, instance("Failed", uid="three", ran=RAN_AND_CRASHED, reason="GuestCrashed"))
    assert (told(seen_again), told(second)) == ([], [])
    assert second.status["startFailure"]["consecutiveCrashCount"] == 2


def test_one_that_never_ran_has_failed_to_start_and_crashed_not_at_all() -> None:
    never = instance("Failed", reason="Unsupported")
    assert counted(FAILED_TWICE, never) == (3, 0)
    assert not told(plan(None, never))


@pytest.mark.parametrize("child", [instance("Pending", reason="MissingSecret"), instance("Pending", reason="WaitingForDataVolume")])
def test_who_waits_has_not_failed(child: Json) -> None:
    assert plan(FAILED_TWICE, child).status["startFailure"]["consecutiveFailCount"] == 2
    assert "startFailure" not in plan(None, child).status


@pytest.mark.parametrize("reason", ["PodGone", "GuestLost"])
def test_a_guest_that_ran_until_its_pod_or_its_node_was_taken_away_did_not_fail(reason: str) -> None:
    for gone in (instance("Failed", ran=RAN_AND_CRASHED, reason=reason), probed("Failed", False, reason=reason)):
        assert "startFailure" not in plan(None, gone).status
        assert plan(None, gone).next_look is None


@pytest.mark.parametrize(
    ("reason", "ran"),
    [("PodGone", None), ("GuestLost", None), ("OutOfcpu", None), ("SwitchedOff", RAN_AND_CRASHED), ("SwitchedOff", None)],
)
def test_what_was_done_to_it_by_others_is_waited_out_and_is_no_failure_to_start(
    reason: str, ran: tuple[float, float] | None
) -> None:
    ended = plan(FAILED_TWICE, probed("Failed", False if ran else None, ran, reason=reason))
    failure = ended.status["startFailure"]
    assert (failure["consecutiveFailCount"], failure["consecutiveCrashCount"]) == (2, 1)
    assert failure["retryAfterTimestamp"] > later(0)
    assert not told(plan(None, instance("Failed", ran=ran, reason=reason)))


def test_who_was_asked_to_end_before_its_liveness_probe_had_passed_has_not_failed() -> None:
    for phase in ("Failed", "Succeeded"):
        assert plan(FAILED_TWICE, probed(phase, False, deleted=True)).status["startFailure"]["consecutiveFailCount"] == 2
        assert "startFailure" not in plan(None, probed(phase, False, deleted=True)).status


def test_the_series_of_failed_starts_is_over_once_it_has_started() -> None:
    assert counted({**FAILED_TWICE, "consecutiveCrashCount": 1}, probed("Running", False, RAN_FOR_LONG)) == (2, 1)
    assert counted(FAILED_TWICE, probed("Running", True, (-10, 0))) is None
    assert counted(FAILED_TWICE, instance("Running", ran=(-10, 0))) is None


def test_crashes_are_forgotten_once_the_guest_has_run_well() -> None:
    crashed = {**FAILED_TWICE, "consecutiveCrashCount": 1, "retryAfterTimestamp": later(-100)}
    young = plan(crashed, instance("Running", ran=(-10, 0)))
    failure = young.status["startFailure"]
    assert (failure["consecutiveFailCount"], failure["consecutiveCrashCount"]) == (0, 1)
    assert young.next_look is not None
    assert counted(crashed, instance("Running", ran=(-301, 0))) is None
