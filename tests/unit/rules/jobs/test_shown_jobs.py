"""What `herder job list`, `status`, `pause`, `resume` and `abort` say of a job, at each step of its life."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api.kinds import PodMigrationJob, ReservationView
from herder.cli.job.listing import list_text
from herder.cli.job.report import report_text
from herder.cli.tables import plain
from herder.rules.jobs import wishes
from herder.rules.jobs.shown import JobList, job_report, job_row, waits_for
from herder.rules.machines.wishes import Impossible
from tests.unit.rules.jobs.clusters import Json, job, running, view, web_pod

LATER = "2026-01-01T00:00:30Z"
NOW = 1767225660.0  # a minute after they were created
POD = view(web_pod("web-0"))
GOING = view(web_pod("web-0", deletionTimestamp=LATER))


def condition(kind: str, holds: bool, reason: str = "", message: str = "") -> Json:
    return {"type": kind, "status": str(holds), "reason": reason, "message": message, "lastTransitionTime": LATER}


def reserved(phase: str = "Available", node: str = "b", **spec: Any) -> ReservationView:
    status = {"phase": phase, "nodeName": node}
    return msgspec.convert({"metadata": {"name": "room"}, "spec": spec, "status": status}, ReservationView)


REFERS = {"reservationOptions": {"reservationRef": {"name": "room"}}}
RESERVING = running("move", "web-0", spec=REFERS, conditions=[condition("ReservationCreated", True)], status="ReservationCreated")
EVICTING = running(
    "move", "web-0", spec=REFERS, reason="Evicting", conditions=[condition("Eviction", False, "Evicting", "is told to end")]
)
EVICTED = running(
    "move",
    "web-0",
    spec=REFERS,
    conditions=[
        condition("ReservationScheduled", True),
        condition("Eviction", True, "EvictComplete"),
        condition("PodBoundReservation", False, "WaitForPodBindReservation", "has not taken the room yet"),
    ],
)
OVER = running("move", "web-0", phase="Failed", reason="Timeout", message="no room within 5m", completionTime=LATER)


def shown(about: PodMigrationJob, pod: Any = POD, reservation: ReservationView | None = None) -> list[str]:
    return plain(report_text(job_report(about, pod, reservation, NOW)))


def test_a_list_shows_the_node_that_is_left_and_the_one_where_room_is_held() -> None:
    waiting = job("later", "web-1", "Pending", reason="WaitingForNodeLimit")
    rows = [job_row(one, {"shop/web-1": "c"}, {"room": reserved()}) for one in (RESERVING, EVICTED, waiting, OVER)]
    assert [(row.phase, row.source_node, row.target_node, row.reason) for row in rows] == [
        ("Running", "a", "b", ""),
        ("Running", "a", "b", "WaitForPodBindReservation"),
        ("Pending", "c", "", "WaitingForNodeLimit"),
        ("Failed", "a", "", "Timeout"),
    ]
    assert plain(list_text(JobList(tuple(rows))))[0].split() == ["NAME", "PHASE", "POD", "FROM", "TO", "REASON", "AGE"]
    assert "herder evacuate" in plain(list_text(JobList(())))[0]


@pytest.mark.parametrize(
    ("about", "text", "since"),
    [
        (job("new", "web-0"), "no controller has looked at it yet", "2026-01-01T00:00:00Z"),
        (job("held", "web-0", "Pending", reason="Paused", message="it is paused", waitingSince=LATER), "it is paused", LATER),
        (running("begun", "web-0"), "it is about to reserve room", "2026-01-01T00:00:00Z"),
        (EVICTED, "has not taken the room yet", LATER),
        (OVER, "", ""),
    ],
)
def test_what_a_job_waits_for_and_since_when(about: PodMigrationJob, text: str, since: str) -> None:
    assert waits_for(about) == (text, since)


def test_the_status_of_a_running_job_names_room_conditions_and_what_one_can_do() -> None:
    lines = shown(EVICTED, None, reserved())
    assert lines[0] == "job move: Running by Reservation for 60s"
    assert lines[1] == "pod shop/web-0 leaves a, of Deployment shop/web"
    assert lines[2].startswith("waits: has not taken the room yet (for ")
    assert lines[3] == "reservation room: Available on b, open"
    assert [line.split()[0] for line in lines[4:8]] == ["CONDITION", "ReservationScheduled", "Eviction", "PodBoundReservation"]
    assert lines[8:] == ["You can:", "  `herder job abort move` ends the job; the replacement keeps its room"]


def test_the_status_of_a_job_that_waits_says_how_to_hold_or_end_it_and_who_explains_it() -> None:
    lines = shown(job("held", "web-0", "Pending", reason="WaitingForNodeLimit", message="2 pods leave node a", waitingSince=LATER))
    assert lines[1] == "pod shop/web-0 leaves a"
    assert lines[2].startswith("waits: WaitingForNodeLimit: 2 pods leave node a (for ")
    assert [line.split("`")[1] for line in lines[4:]] == [
        "herder explain job held",
        "herder job pause held",
        "herder job abort held",
    ]
    paused = shown(job("held", "web-0", "Pending", reason="Paused", spec={"paused": True}))
    assert paused[0].startswith("job held: Pending, paused for ")
    assert [line.split("`")[1] for line in paused[-2:]] == ["herder job resume held", "herder job abort held"]


def test_the_status_of_a_finished_job_says_how_it_ended_and_how_to_try_again() -> None:
    lines = shown(OVER, POD)
    assert lines[0].startswith("job move: Failed by Reservation after 30s, ") and lines[0].endswith(": Timeout: no room within 5m")
    assert "herder evacuate web-0 -n shop" in lines[-2] and "kubectl delete pmj move" in lines[-1]


def test_a_reservation_that_is_gone_is_said_to_be_gone() -> None:
    assert "reservation room: it is not there any more" in shown(RESERVING, POD, None)
    told = job_report(RESERVING, POD, None, NOW, "you may not read reservations").reservation
    assert told is not None and told.message == "you may not read reservations"


# --- wishes ----------------------------------------------------------------------------------------------------------------------


def test_a_job_is_paused_before_its_pod_has_left_and_not_afterwards() -> None:
    paused = wishes.pause(RESERVING, POD)
    assert paused.patch == {"metadata": {"uid": "uid-move"}, "spec": {"paused": True}}
    assert "goes back to Pending and gives up its room" in paused.said
    # The try was written down, and the pod is as it was: a budget may hold it.
    assert wishes.pause(EVICTING, POD).patch is not None
    for about, pod in ((EVICTING, GOING), (EVICTING, None), (EVICTED, None)):
        with pytest.raises(Impossible, match="cannot be paused"):
            wishes.pause(about, pod)
    already = job("held", "web-0", "Pending", spec={"paused": True})
    assert wishes.pause(already, POD).patch is None
    assert wishes.resume(already, POD).patch == {"metadata": {"uid": "uid-held"}, "spec": {"paused": False}}
    assert wishes.resume(RESERVING, POD).patch is None


def test_to_abort_says_what_becomes_of_the_pod_and_of_the_room() -> None:
    early = wishes.abort(RESERVING, POD)
    assert early.patch == {"metadata": {"uid": "uid-move", "annotations": {"herder.dev/abort": "true"}}}
    assert "stays where it is" in early.said and "given back" in early.said
    assert "its replacement keeps its room" in wishes.abort(EVICTED, None).said
    again = job("gone", "web-0", "Pending", annotations={"herder.dev/abort": "true"})
    assert wishes.abort(again, POD).patch is None


@pytest.mark.parametrize("wish", [wishes.pause, wishes.resume, wishes.abort])
def test_a_job_that_is_over_is_left_alone_and_the_answer_says_so(wish: Any) -> None:
    with pytest.raises(Impossible, match=r"PodMigrationJob move is over \(Failed\): there is nothing to"):
        wish(OVER, POD)
