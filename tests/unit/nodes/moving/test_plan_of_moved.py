"""What a node does about the pod of a guest that is on its way to another node."""

from typing import Any

from herder.api import labels
from herder.api.guest import MigrationReport
from herder.nodes.moving.moving import Moving
from herder.nodes.plan import PodPlan, plan_pod
from herder.nodes.pod_status import pod_status
from herder.nodes.runtimes.base import GuestStatus
from tests.unit.rules.machines import NOW, later, pod

PAUSED, HANDED_OVER, INCOMING = GuestStatus("Paused"), GuestStatus("HandedOver"), GuestStatus("Incoming")
GONE_IN: dict[str, Any] = {"deletionTimestamp": later(45), "deletionGracePeriodSeconds": 45}


def plan(status: GuestStatus | None, moving: Moving, **about: Any) -> PodPlan:
    return plan_pod(pod(node="node-1", **about), status, NOW, moving=moving)


def test_a_guest_that_may_not_run_here_is_not_resumed_by_its_owners_wish() -> None:
    assert plan(PAUSED, Moving(held=True), annotations={labels.PAUSE: "false"}).actions == ()
    assert plan(PAUSED, Moving(), annotations={labels.PAUSE: "false"}).actions == ("resume",)


def test_a_pod_stays_until_its_target_has_heard_that_the_guest_was_given_away() -> None:
    assert plan(HANDED_OVER, Moving(owed=True), **GONE_IN) == PodPlan(shown=HANDED_OVER)
    assert plan(HANDED_OVER, Moving(), **GONE_IN).actions == ("remove", "finish")


def test_a_guest_on_its_way_is_called_back_before_it_is_shut_down() -> None:
    assert plan(GuestStatus("Running"), Moving(under_way=True), **GONE_IN).actions == ()
    assert plan(GuestStatus("Running"), Moving(), **GONE_IN).actions == ("shut_down",)


def test_a_target_without_its_memory_is_removed_at_once() -> None:
    assert plan(INCOMING, Moving(), **GONE_IN).actions == ("remove", "finish")


def test_a_source_says_that_it_gave_the_guest_away_and_ends_when_nobody_needs_it_any_more() -> None:
    given = MigrationReport(migration="m", handed_over=True)
    launcher = pod(node="node-1", annotations={labels.GUEST: "{}"})
    assert _phase_and_state(launcher, given) == ("Running", "HandedOver")
    done = MigrationReport(migration="m", handed_over=True, completed=True)
    assert _phase_and_state(launcher, done) == ("Succeeded", "HandedOver")


def _phase_and_state(launcher: Any, report: MigrationReport) -> tuple[str, str]:
    status = pod_status(launcher, HANDED_OVER, "10.0.0.1", NOW, migration=report)
    guest = next(one for one in status["conditions"] if one["type"] == labels.GUEST_CONDITION)
    return status["phase"], guest["reason"]
