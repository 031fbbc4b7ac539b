"""ReservationFirst, step by step: what is made, what is said, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from herder.api import labels
from herder.rules.jobs.execution.status import status_of
from tests.unit.rules.jobs.execution.stage import STATEFUL_SET, Stage

TRUE = "True"


def test_it_reserves_then_evicts_then_sees_the_replacement_in_its_place() -> None:
    stage = Stage().admit()
    first = stage.look()
    assert first.hold and first.refer == "job-job-uid" and first.evict is None
    assert first.create_reservation is not None and first.create_reservation["spec"]["unschedulable"] is True
    stage.look()
    assert stage.conditions()["ReservationCreated"][0] == TRUE
    assert stage.conditions()["ReservationScheduled"] == ("False", "Unschedulable")
    stage.place()
    evicts = stage.look()
    assert evicts.open_reservation and evicts.evict is not None and evicts.evict.uid == "pod-1"
    assert stage.conditions()["Eviction"] == ("False", "Evicting")
    stage.look()
    stage.ends().look()
    assert stage.conditions()["Eviction"] == (TRUE, "EvictComplete")
    assert stage.conditions()["PodBoundReservation"] == ("False", "WaitForPodBindReservation")
    stage.comes(status={"phase": "Pending"})
    stage.look()
    assert stage.phase == "Running" and stage.status["podRef"]["name"] == "web-2" and stage.status["nodeName"] == "b"
    stage.others[0]["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    stage.look()
    assert stage.phase == "Succeed"
    assert {kind for kind, (status, _) in stage.conditions().items() if status == TRUE} == {
        *("ReservationCreated", "ReservationScheduled", "Eviction"),
        *("PodScheduled", "PodBoundReservation", "ReservationBound"),
    }
    assert stage.look().let_go and stage.look().delete is None


def test_each_step_tells_once() -> None:
    stage = Stage().until_evicted()
    for _ in range(3):
        stage.look()
    told = [(event.reason, event.message) for plan in stage.plans for event in plan.events]
    assert told == [
        ("ReservationCreated", "a reservation is made"),
        ("Evicting", "room is held on node b; evicting pod default/web-1 from node a"),
    ]


def test_a_look_that_finds_nothing_new_changes_nothing() -> None:
    stage = Stage().until_evicted()
    stage.look()
    before = stage.status
    stage.now += 100
    assert stage.look().status == before


def test_the_scheduler_words_are_in_the_condition_as_long_as_there_is_no_room() -> None:
    stage = Stage().admit()
    stage.look()
    assert stage.reservation is not None
    words = "0/3 nodes are available: 3 Insufficient cpu."
    stage.reservation["status"] = {"phase": "Pending", "conditions": [{"type": "Scheduled", "status": "False", "message": words}]}
    plan = stage.look()
    assert stage.reason == "Unschedulable" and words in stage.status["message"]
    assert [event.reason for event in plan.events] == ["Unschedulable"]


def test_that_there_is_no_room_is_told_also_where_the_job_was_faster_than_the_scheduler() -> None:
    stage = Stage().admit()
    stage.look()
    stage.look()
    assert stage.conditions()["ReservationScheduled"] == ("False", "Unschedulable")
    assert stage.reservation is not None
    said = {"type": "Scheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient cpu."}
    stage.reservation["status"] = {"phase": "Pending", "conditions": [said]}
    told = [stage.look().events, stage.look().events]
    assert [[event.reason for event in events] for events in told] == [["Unschedulable"], []]


def test_no_room_until_the_end_of_its_time_fails_and_releases() -> None:
    stage = Stage(ttl="60s").admit()
    stage.look()
    stage.look()
    assert stage.plan().next_look == 60
    stage.now += 60
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "Timeout") and "has no node yet" in stage.status["message"]
    over = stage.look()
    assert over.delete_reservation is not None and over.let_go and stage.reservation is None


def test_a_reservation_that_somebody_deleted_before_the_eviction_fails_the_job() -> None:
    stage = Stage().admit()
    stage.look()
    stage.look()
    stage.reservation = None
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "MissingReservation")
    assert stage.old is not None and "deletionTimestamp" not in stage.old["metadata"]


def test_a_reservation_that_is_being_deleted_is_not_deleted_again_and_again() -> None:
    """Somebody else's finalizer may hold it for as long as they like."""
    stage = Stage().admit()
    stage.look()
    assert stage.reservation is not None
    stage.reservation["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for _ in range(2):
        plan = stage.look()
        assert plan.delete_reservation is None and plan.create_reservation is None and plan.next_look not in (0, 0.0)
    assert stage.phase == "Running", "it was left over from before a pause, and is made anew"
    del stage.reservation["metadata"]["deletionTimestamp"]
    stage.look()
    stage.reservation["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "MissingReservation")


def test_room_on_the_pods_own_node_is_none() -> None:
    stage = Stage().admit()
    stage.look()
    stage.place("a")
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "ForbiddenMigratePod")


@pytest.mark.parametrize("step", [1, 2], ids=["before it reserves", "when it has reserved"])
def test_a_pod_that_is_gone_before_the_eviction_fails_the_job(step: int) -> None:
    stage = Stage().admit()
    for _ in range(step):
        stage.look()
    stage.ends().look()
    assert (stage.phase, stage.reason) == ("Failed", "MissingPod")
    stage.look()
    assert stage.reservation is None


def test_a_pod_that_somebody_else_deletes_before_the_eviction_fails_the_job() -> None:
    stage = Stage().admit()
    assert stage.old is not None
    stage.old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "MissingPod") and stage.reservation is None


def test_a_scale_up_does_not_take_the_room_before_the_eviction() -> None:
    """Trap: scale-up pod between reserve and evict. The room is closed, and opened only when nobody else waits for room."""
    stage = Stage().admit()
    stage.look()
    stage.place()
    stage.comes("web-9", "pod-9", "", took=False, status={"phase": "Pending"})
    plan = stage.look()
    assert plan.evict is None and not plan.open_reservation and "web-9" in stage.status["message"]
    stage.due = 1  # it is the replacement of another job's pod
    assert stage.look().evict is not None


def test_room_that_somebody_took_before_the_eviction_is_made_anew() -> None:
    stage = Stage().admit()
    stage.look()
    stage.place()
    stage.comes("web-9", "pod-9")
    plan = stage.look()
    assert plan.delete_reservation is not None and plan.evict is None and stage.phase == "Running"
    stage.others.clear()
    assert stage.look().create_reservation is not None


def test_it_dies_between_saying_that_it_evicts_and_evicting() -> None:
    stage = Stage().admit()
    stage.look()
    stage.place()
    plan = stage.plan()
    stage.job["status"] = plan.status
    again = stage.look()
    assert again.evict is not None and again.open_reservation and again.status is None


def test_the_answer_to_its_eviction_is_lost_and_the_pod_is_gone() -> None:
    stage = Stage().admit()
    stage.look()
    stage.place()
    stage.job["status"] = stage.plan().status
    stage.ends().look()
    assert stage.phase == "Running" and stage.conditions()["Eviction"] == (TRUE, "EvictComplete")
    assert stage.reservation is not None and stage.reservation["spec"]["unschedulable"] is False


def test_a_pod_that_takes_longer_to_end_than_the_job_has_keeps_the_room_for_its_replacement() -> None:
    """Trap: grace period longer than TTL."""
    stage = Stage(ttl="60s").until_evicted()
    stage.now += 61
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "Timeout") and "the room is kept" in stage.status["message"]
    waits = stage.look()
    assert waits.delete_reservation is None and not waits.let_go
    stage.ends().comes()
    assert stage.look().let_go


@pytest.mark.parametrize(("wanted", "gone", "said"), [(0, False, "scaled to zero"), (None, True, "is gone")])
def test_no_replacement_is_due_any_more(wanted: int | None, gone: bool, said: str) -> None:
    """Trap: rollout or scale-to-zero after eviction; workload deleted."""
    stage = Stage().until_evicted()
    stage.wanted, stage.gone = wanted, gone
    stage.look()
    assert stage.phase == "Running", "the old pod is still there"
    stage.ends().look()
    assert (stage.phase, stage.reason) == ("Failed", "NoReplacement") and said in stage.status["message"]
    over = stage.look()
    assert over.delete_reservation is not None and over.let_go


def test_room_is_kept_while_another_job_of_its_controller_is_about_to_evict() -> None:
    """Trap: two jobs of one ReplicaSet, replacements crossed. Ours took the room of the other: the other's will take ours."""
    stage = Stage().until_evicted().ends()
    stage.wanted = 2
    stage.others.append(stage.pod("web-9", "pod-9", "c"))  # the other job has begun to evict it
    stage.comes("web-2", "pod-2", "d", took=False)
    stage.leaving = frozenset(("pod-9",))
    assert stage.look().delete_reservation is None and stage.phase == "Running"
    stage.others = [one for one in stage.others if one["metadata"]["uid"] != "pod-9"]
    stage.leaving = frozenset()
    stage.comes("web-3", "pod-3", "b")
    stage.look()
    assert (stage.phase, stage.status["podRef"]["name"]) == ("Succeed", "web-3")


def test_room_is_given_back_when_the_other_job_of_its_controller_evicts_nobody_after_all() -> None:
    stage = Stage().until_evicted().ends()
    stage.wanted = 2
    stage.others.append(stage.pod("web-9", "pod-9", "c"))
    stage.comes("web-2", "pod-2", "d", took=False)
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "NoReplacement") and stage.look().delete_reservation is not None


def test_a_replacement_that_is_placed_elsewhere_ends_the_job_too() -> None:
    """Trap: replacement larger than the reservation."""
    stage = Stage().until_evicted().ends()
    stage.comes("web-2", "pod-2", "", took=False, status={"phase": "Pending"})
    stage.look()
    assert stage.phase == "Running", "it may still take the room"
    stage.others[0]["spec"]["nodeName"] = "c"
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "NoReplacement")


def test_the_replacement_is_seen_before_the_reservation_says_that_it_is_taken() -> None:
    """Trap: bound pod seen before, or after, the reservation's status."""
    stage = Stage().until_evicted().ends()
    assert stage.reservation is not None
    available = stage.reservation["status"]
    stage.comes()
    taken, stage.reservation["status"] = stage.reservation["status"], available
    stage.look()
    assert stage.phase == "Running" and "ReservationBound" not in stage.conditions()
    stage.reservation["status"] = taken
    stage.look()
    assert stage.phase == "Succeed"


def test_a_replacement_that_is_gone_before_it_was_ready_fails_the_job() -> None:
    stage = Stage().until_evicted().ends()
    stage.comes(status={"phase": "Pending"})
    stage.look()
    stage.others.clear()
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "NoReplacement") and "web-2" in stage.status["message"]


def test_a_pod_of_a_stateful_set_comes_back_under_its_name() -> None:
    stage = Stage(owner=STATEFUL_SET).admit()
    made = stage.look().create_reservation
    assert made is not None and made["spec"]["owners"][0]["object"]["name"] == "web-1"
    stage.place()
    stage.comes("web-7", "pod-7", "", took=False, status={"phase": "Pending"})
    assert stage.look().evict is not None, "another ordinal cannot take the room"
    stage.others.clear()
    stage.ends().comes("web-1", "pod-2")
    stage.look()
    assert stage.phase == "Succeed" and status_of(stage.view).pod_uid == "pod-1"


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"unschedulable": True}, "cordoned"),
        ({"taints": [{"key": "away", "effect": "NoSchedule"}]}, "away"),
        (None, "is gone"),
    ],
)
def test_a_node_that_is_no_place_any_more_is_seen_right_before_the_eviction(node: dict[str, Any] | None, said: str) -> None:
    """Trap: node deleted, cordoned, tainted between Available and evict; the reservation has not been sent back yet."""
    stage = Stage().admit()
    stage.look()
    stage.place()
    stage.node = node
    plan = stage.look()
    assert plan.evict is None and not plan.open_reservation
    assert plan.next_look is not None, "where it becomes a place again nobody tells"
    assert (stage.phase, stage.reason) == ("Running", "Unschedulable")
    assert stage.conditions()["ReservationScheduled"] == ("False", "Unschedulable") and said in stage.status["message"]
    stage.node = {}
    assert stage.look().evict is not None and stage.conditions()["ReservationScheduled"][0] == TRUE


def test_a_node_that_is_no_place_any_more_is_seen_while_a_budget_holds_the_eviction() -> None:
    stage = Stage().admit()
    stage.look()
    stage.place()
    stage.job["status"] = stage.plan().status  # it was tried, and refused
    stage.node = {"unschedulable": True}
    assert stage.look().evict is None and stage.reason == "Unschedulable"


# --- a reservation that was given -------------------------------------------------------------------------------------------------

ANOTHER_JOB = {
    "apiVersion": "scheduling.koordinator.sh/v1alpha1",
    "kind": "PodMigrationJob",
    "name": "other",
    "uid": "o",
    "controller": True,
}
GIVEN: dict[str, Any] = {"reservationOptions": {"reservationRef": {"name": "mine"}}}


def test_a_given_reservation_is_used_and_never_released() -> None:
    stage = Stage(**GIVEN).admit()
    stage.reservation = stage.given()
    plan = stage.look()
    assert plan.evict is not None and not plan.open_reservation and not plan.hold and plan.create_reservation is None
    stage.job["metadata"]["annotations"] = {labels.ABORT: "true"}
    stage.look()
    assert stage.phase == "Aborted" and stage.look().delete_reservation is None


def test_a_given_reservation_is_waited_for() -> None:
    stage = Stage(**GIVEN).admit()
    stage.reservation = stage.given(status={"phase": "Pending"})
    assert stage.look().evict is None and stage.phase == "Running"
    stage.place()
    assert stage.look().evict is not None


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"status": {"phase": "Succeeded"}}, "is over"),
        ({"status": {"phase": "Failed"}}, "is over"),
        ({"unschedulable": True}, "is closed"),
        ({"cpu": "500m"}, "too little cpu"),
        ({"owners": [{"labelSelector": {"matchLabels": {"app": "db"}}}]}, "none of its owners fits"),
        (
            {"owners": [{"object": {"kind": "Pod", "name": "web-1", "namespace": "default", "uid": "pod-1"}}]},
            "none of its owners fits",
        ),
        ({"status": {"phase": "Available", "nodeName": "a"}}, "is on node a"),
        (
            {"metadata": {"ownerReferences": [ANOTHER_JOB]}},
            "was made by PodMigrationJob other",
        ),
    ],
)
def test_a_given_reservation_that_is_not_right_is_refused(spec: dict[str, Any], said: str) -> None:
    stage = Stage(**GIVEN).admit()
    stage.reservation = stage.given(**spec)
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "ForbiddenMigratePod") and said in stage.status["message"]


def test_a_given_reservation_that_another_job_uses_is_refused() -> None:
    stage = Stage(**GIVEN).admit()
    stage.reservation, stage.used_by = stage.given(), ("other",)
    stage.look()
    assert stage.reason == "ForbiddenMigratePod" and "PodMigrationJob other" in stage.status["message"]


def test_a_given_reservation_that_is_not_there() -> None:
    stage = Stage(**GIVEN).admit()
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "MissingReservation")


def test_a_given_reservation_that_goes_while_a_budget_holds_the_eviction() -> None:
    """Trap: given reservation expires during eviction backoff."""
    stage = Stage(**GIVEN).admit()
    stage.reservation = stage.given()
    stage.job["status"] = stage.plan().status
    stage.reservation["status"] = {"phase": "Failed", "reason": "Expired"}
    plan = stage.look()
    assert plan.evict is None and (stage.phase, stage.reason) == ("Failed", "ForbiddenMigratePod")


def test_of_room_for_several_who_came_before_the_eviction_is_no_replacement() -> None:
    """A scale-up takes a part of it after the job has begun: the pod that is evicted later is replaced by another one."""
    stage = Stage(**GIVEN).admit()
    stage.reservation = stage.given(allocateOnce=False, cpu="2", status={"phase": "Pending"})
    stage.look()
    stage.now += 5
    stage.place()
    stage.wanted = 2
    stage.others.append(stage.pod("web-5", "pod-5", "b", took=True))
    stage.now += 5
    assert stage.look().evict is not None
    stage.now += 5
    stage.ends().look()
    assert (stage.phase, stage.status.get("podRef")) == ("Running", None)
    stage.others.append(stage.pod("web-6", "pod-6", "b", took=True))
    owners = [
        {"kind": "Pod", "namespace": "default", "name": name, "uid": uid} for name, uid in (("web-5", "pod-5"), ("web-6", "pod-6"))
    ]
    stage.reservation["status"] = {"phase": "Available", "nodeName": "b", "currentOwners": owners}
    stage.look()
    assert (stage.phase, stage.status["podRef"]["name"]) == ("Succeed", "web-6")
