"""What a node does about a pod, from what it knows and what the pod says."""

from typing import Any

import pytest

from herder.api import labels, reasons
from herder.nodes.health import Health
from herder.nodes.plan import PodPlan, plan_pod
from herder.nodes.runtimes.base import GuestStatus
from tests.unit.rules.machines import NOW, later, pod

RUNNING = GuestStatus("Running")
PAUSED = GuestStatus("Paused")
FULL = GuestStatus("Paused", reasons.INSUFFICIENT_STORAGE, "no room")
# The API cuts its times to whole seconds: a guest has up to one more, never one less than it was promised.
CUT_OFF = 1
GONE_IN: dict[str, Any] = {"deletionTimestamp": later(45), "deletionGracePeriodSeconds": 45}


def plan(status: GuestStatus | None, health: Health | None = None, no_room: str = "", **about: Any) -> PodPlan:
    return plan_pod(pod(node="node-1", **about), status, NOW, health or Health(), no_room)


def test_a_new_pod_is_started() -> None:
    assert plan(None).actions == ("start",)


def test_a_pod_without_room_fails_and_says_of_what_there_is_too_little() -> None:
    refused = plan(None, no_room="OutOfcpu node node-1 has too little cpu left for this pod")
    assert refused.actions == ()
    assert refused.shown is not None
    assert (refused.shown.state, refused.shown.reason) == ("Failed", "OutOfcpu")
    assert refused.shown.message == "node node-1 has too little cpu left for this pod"


def test_a_running_guest_is_left_alone_and_told_about() -> None:
    assert plan(RUNNING) == PodPlan(shown=RUNNING)


@pytest.mark.parametrize(
    ("wish", "status", "actions"),
    [
        ("true", RUNNING, ("pause",)),
        ("true", PAUSED, ()),
        ("false", PAUSED, ("resume",)),
        ("false", RUNNING, ()),
        ("nonsense", RUNNING, ()),
        # It stands still for want of room: nobody wakes it before there is some, and its owner may want it to stay so.
        ("false", FULL, ()),
        ("true", FULL, ("pause",)),
    ],
)
def test_a_guest_is_paused_and_resumed_as_its_pod_says(wish: str, status: GuestStatus, actions: tuple[str, ...]) -> None:
    assert plan(status, annotations={labels.PAUSE: wish}).actions == actions


def test_a_guest_that_was_started_paused_stays_so_until_it_is_told() -> None:
    assert plan(PAUSED).actions == ()


def test_a_guest_whose_liveness_probe_failed_is_ended() -> None:
    ended = plan(RUNNING, Health(dead="no answer from port 80"))
    assert ended.actions == ("remove",)
    assert ended.shown is not None
    assert (ended.shown.state, ended.shown.reason) == ("Failed", "LivenessProbeFailed")
    assert ended.shown.message == "no answer from port 80"


def test_one_that_never_passed_its_liveness_probe_says_so() -> None:
    ended = plan(RUNNING, Health(dead="no answer from port 80", alive=None))
    assert ended.shown is not None
    assert ended.shown.reason == "LivenessProbeNeverPassed"


def test_a_deleted_pod_gets_its_grace() -> None:
    ending = plan(RUNNING, **GONE_IN)
    assert ending.actions == ("shut_down",)
    assert ending.next_look == pytest.approx(30 + CUT_OFF), "switched off before the pod's own time is over"


def test_a_guest_that_does_not_end_in_its_time_is_switched_off() -> None:
    over = plan(RUNNING, deletionTimestamp=later(10), deletionGracePeriodSeconds=45)
    assert over.actions == ("remove", "finish")
    assert over.shown is not None
    assert over.shown.reason == "SwitchedOff"


@pytest.mark.parametrize(
    ("own", "given", "guests"),
    [(45, 45, 30), (20, 20, 5), (15, 15, 0), (45, 10, 5), (20, 600, 585)],
    ids=["its own 30 s", "its own 5 s", "none", "a person gives less", "a person gives more"],
)
def test_a_guest_gets_the_time_that_its_spec_says_and_not_what_its_pod_has_beyond(own: int, given: int, guests: int) -> None:
    about: dict[str, Any] = {"deletionTimestamp": later(given), "deletionGracePeriodSeconds": given}
    ending = plan(RUNNING, grace=own, annotations={labels.GUEST: "{}"}, **about)
    assert (ending.next_look or 0) == pytest.approx(guests + CUT_OFF if guests else 0)
    assert ending.actions == (("shut_down",) if guests else ("remove", "finish"))


def test_half_of_a_short_grace_is_a_plain_pods_own() -> None:
    ending = plan(RUNNING, grace=20, deletionTimestamp=later(20), deletionGracePeriodSeconds=20)
    assert ending.next_look == pytest.approx(10 + CUT_OFF)


def test_without_grace_it_is_switched_off_at_once() -> None:
    assert plan(RUNNING, deletionTimestamp=later(0), deletionGracePeriodSeconds=0).actions == ("remove", "finish")


@pytest.mark.parametrize("status", [None, GuestStatus("ShutDown"), GuestStatus("Crashed")])
def test_a_deleted_pod_whose_guest_has_ended_may_go(status: GuestStatus | None) -> None:
    assert plan(status, **GONE_IN).actions == ("remove", "finish")


def test_what_has_ended_stays_to_be_read() -> None:
    ended = GuestStatus("ShutDown")
    assert plan(ended) == PodPlan(shown=ended)
    assert plan(ended, phase="Succeeded").actions == ()


def test_nothing_runs_on_for_a_pod_that_has_ended_for_everybody() -> None:
    assert plan(RUNNING, phase="Failed").actions == ("remove",)


def test_a_guest_that_the_node_no_longer_knows_is_not_started_a_second_time() -> None:
    import msgspec

    from herder.api.core.containers import ContainerState, ContainerStateRunning, ContainerStatus

    ran = ContainerStatus(name="compute", state=ContainerState(running=ContainerStateRunning()))
    known = pod(node="node-1", phase="Running")
    known = msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, container_statuses=(ran,)))
    lost = plan_pod(known, None, NOW)
    assert lost.actions == ()
    assert lost.shown is not None
    assert (lost.shown.state, lost.shown.reason) == ("Failed", "GuestLost")
