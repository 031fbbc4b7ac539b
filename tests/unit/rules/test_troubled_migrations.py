"""What the nodes of a migration meet, and what it does without, is on the migration at once, and in an event once."""

from typing import Any

import msgspec

from herder.api import reasons
from herder.api.core import Pod
from herder.api.guest import GuestReport, report_of
from herder.rules.migration import MigrationPlan
from tests.unit.rules.migrations import migration, ordered, phase, plan, source, target, why

ADDRESS = {"address": "simulated://node-2"}
NO_USERFAULTFD = "node node-2: no userfaultfd; set the sysctl vm.unprivileged_userfaultfd=1 there"


def saying(pod: Pod, **changes: Any) -> Pod:
    """The same pod, whose agent says something else of its guest."""
    report = msgspec.structs.replace(report_of(pod) or GuestReport(state="Preparing"), **changes)
    said = msgspec.json.encode(report).decode()
    conditions = tuple(msgspec.structs.replace(one, message=said) for one in pod.status.conditions)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=conditions))


def told(plan: MigrationPlan) -> list[tuple[str, str]]:
    return [(one.type, one.reason) for one in plan.events]


def again(plan: MigrationPlan, of: str) -> dict[str, Any]:
    """The migration, once that status was written."""
    assert plan.status is not None
    return {**migration(of), "status": plan.status}


def test_an_error_that_the_target_meets_is_shown_and_told_once() -> None:
    failing = saying(
        target("Preparing"), reason=reasons.START_FAILED, message="OSError: No space left on device; it is tried again"
    )
    first = plan(migration("PreparingTarget"), source(), failing)
    assert (phase(first), *why(first)) == (
        "PreparingTarget",
        reasons.START_FAILED,
        "OSError: No space left on device; it is tried again",
    )
    assert told(first) == [("Warning", reasons.START_FAILED)]
    assert told(plan(again(first, "PreparingTarget"), source(), failing)) == []
    well = plan(again(first, "PreparingTarget"), source(), target("Incoming", said={}))
    assert why(well) == ("", "")


def test_what_is_waited_for_at_the_target_is_shown() -> None:
    waits = saying(target("Preparing"), reason=reasons.MISSING_SECRET, message="waits for Secret keys, which does not exist")
    assert why(plan(migration("PreparingTarget"), source(), waits)) == (
        reasons.MISSING_SECRET,
        "waits for Secret keys, which does not exist",
    )


def test_a_target_that_never_got_ready_is_given_up_with_its_own_words() -> None:
    failing = saying(target("Preparing"), reason=reasons.START_FAILED, message="QMPError: no")
    made = plan(migration("PreparingTarget", since=-901), source(), failing)
    assert phase(made) == "Failed"
    assert why(made) == (reasons.PENDING_TIMEOUT, "no target was ready within 900 s: QMPError: no")


def test_an_error_that_the_source_meets_is_shown_and_told_once() -> None:
    leaves = source(said={"trouble": "OSError: Input/output error; it is tried again"}, order=ordered())
    first = plan(migration("Running"), leaves, target(said=ADDRESS))
    assert (phase(first), *why(first)) == ("Running", reasons.NODE_ERROR, "OSError: Input/output error; it is tried again")
    assert told(first) == [("Warning", reasons.NODE_ERROR)]
    assert told(plan(again(first, "Running"), leaves, target(said=ADDRESS))) == []


def test_one_that_does_without_post_copy_goes_on_and_says_so_wherever_people_look() -> None:
    waits = target(said={**ADDRESS, "no_post_copy": NO_USERFAULTFD})
    first = plan(migration("PreparingTarget"), source(), waits)
    assert phase(first) == "TargetReady"
    assert first.order is not None, "it goes on"
    assert why(first) == (reasons.POST_COPY_NOT_AVAILABLE, f"{NO_USERFAULTFD}; it goes on without post-copy")
    assert first.status is not None
    assert first.status["migrationState"]["postCopyUnavailable"] == NO_USERFAULTFD
    assert told(first) == [("Warning", reasons.POST_COPY_NOT_AVAILABLE)]
    second = plan(again(first, "TargetReady"), source(said={}, order=ordered()), waits)
    assert told(second) == []
    moved = plan(
        again(second, "Running"),
        source("HandedOver", said={"handed_over": True, "completed": True}),
        target("Running", said={"taken_over": True, "no_post_copy": NO_USERFAULTFD}),
    )
    assert phase(moved) == "Succeeded"
    assert moved.status is not None
    assert (why(moved), moved.status["migrationState"]["postCopyUnavailable"]) == (("", ""), NO_USERFAULTFD)


def test_an_error_goes_before_what_it_does_without() -> None:
    waits = target(said={**ADDRESS, "no_post_copy": NO_USERFAULTFD})
    leaves = source(said={"trouble": "QMPError: no"}, order=ordered())
    assert why(plan(migration("Running"), leaves, waits))[0] == reasons.NODE_ERROR
