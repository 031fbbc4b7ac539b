"""What all jobs share: time, pauses, abort, deletion, dry runs, and how long they are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from herder.api import labels, reasons
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.arbitrate import Refused
from herder.rules.jobs.arbitration.limits import Wait
from herder.rules.jobs.execution.lifecycle import eviction_refused, held_plan, reservation_refused, undoes
from tests.unit.rules.jobs.execution.stage import Stage

DELETED = "2026-01-01T00:00:00Z"


def _abort(stage: Stage) -> None:
    stage.job["metadata"]["annotations"] = {labels.ABORT: "true"}


def _delete(stage: Stage) -> None:
    stage.job["metadata"]["deletionTimestamp"] = DELETED


ways = pytest.mark.parametrize("end", [_abort, _delete], ids=["abort", "delete"])


@ways
def test_ended_before_the_eviction_it_releases_what_it_made(end: Callable[[Stage], None]) -> None:
    stage = Stage().admit()
    stage.look()
    end(stage)
    stage.look()
    assert stage.phase == "Aborted"
    plan = stage.look()
    assert plan.delete_reservation is not None and plan.let_go and plan.evict is None


@ways
def test_ended_after_the_eviction_it_leaves_the_room_to_the_replacement(end: Callable[[Stage], None]) -> None:
    stage = Stage().until_evicted()
    end(stage)
    stage.look()
    assert stage.phase == "Aborted" and "on its way already" in stage.status["message"]
    plan = stage.look()
    assert plan.delete_reservation is None and not plan.let_go
    stage.ends().comes()
    assert stage.look().let_go


@ways
def test_ended_after_the_eviction_it_keeps_no_room_that_nobody_is_to_take(end: Callable[[Stage], None]) -> None:
    """The replacement found its place elsewhere: the node of the room was cordoned, for a moment."""
    stage = Stage().until_evicted()
    end(stage)
    stage.look()
    assert stage.plan().next_look == 30, "nobody tells a job that is over of pods"
    stage.ends()
    assert stage.plan().delete_reservation is None, "it is not there yet"
    stage.comes(took=False)
    plan = stage.look()
    assert plan.delete_reservation is not None and plan.let_go


@ways
def test_ended_while_it_waits_it_has_nothing_to_release(end: Callable[[Stage], None]) -> None:
    stage = Stage()
    end(stage)
    stage.look()
    plan = stage.look()
    assert stage.phase == "Aborted" and plan.delete_reservation is None and not plan.let_go


def test_paused_before_the_eviction_it_waits_again_with_nothing_held() -> None:
    stage = Stage(ttl="100s").admit()
    stage.look()
    stage.now += 30
    stage.job["spec"]["paused"] = True
    plan = stage.look()
    assert (stage.phase, stage.reason) == ("Pending", "Paused") and plan.delete_reservation is not None
    assert stage.status["runningSeconds"] == 30 and "conditions" not in stage.status
    stage.now += 10_000  # its time stands still
    stage.job["spec"]["paused"] = False
    stage.admit()
    assert stage.look().create_reservation is not None and stage.plan().next_look == 70


def test_paused_after_the_eviction_it_goes_on() -> None:
    stage = Stage().until_evicted()
    stage.job["spec"]["paused"] = True
    stage.ends().comes()
    stage.look()
    assert stage.phase == "Succeed"


def test_a_clock_that_is_set_back_gives_no_time_and_takes_none() -> None:
    stage = Stage(ttl="100s").admit()
    stage.now -= 5000
    assert stage.look().next_look == 100


def test_without_an_end_it_has_all_the_time() -> None:
    stage = Stage(ttl="0s").admit()
    stage.look()
    stage.now += 1e9
    stage.look()
    assert stage.phase == "Running"


def test_its_time_is_that_of_the_configuration_where_it_says_nothing() -> None:
    stage = Stage(config=JobsConfig(default_job_ttl=90.0)).admit()
    assert (stage.status["ttl"] == "1m30s" and stage.plan().next_look is None) or stage.plan().next_look == 90


def test_left_over_room_of_a_job_that_waits_again_goes() -> None:
    """The process died between saying that it waits again and releasing."""
    stage = Stage().admit()
    stage.look()
    stage.job["spec"]["paused"] = True
    plan = stage.plan()
    stage.job["status"] = plan.status
    assert stage.look().delete_reservation is not None


def test_a_dry_run_says_what_it_would_do_and_does_nothing() -> None:
    stage = Stage(config=JobsConfig(dry_run=True)).admit()
    plan = stage.look()
    assert (stage.phase, stage.reason) == ("Succeed", "DryRun") and "would be evicted once room" in stage.status["message"]
    assert plan.create_reservation is None and plan.evict is None and not plan.hold


def test_a_dry_run_that_is_asked_for_too_late_does_not_leave_anything_half_done() -> None:
    stage = Stage().until_evicted().ends()
    stage.config = JobsConfig(dry_run=True)
    stage.comes()
    stage.look()
    assert (stage.phase, stage.reason) == ("Succeed", None)


def test_one_that_waits_too_long_is_ended() -> None:
    stage = Stage(config=JobsConfig(pending_ttl=60.0))
    assert stage.look().next_look == 60
    stage.now += 60
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "Timeout") and "pendingTTL" in stage.status["message"]


def test_the_time_that_it_was_paused_is_no_waiting() -> None:
    """As somebody does who looks at jobs before they begin."""
    stage = Stage(config=JobsConfig(pending_ttl=60.0), paused=True)
    stage.wait(reasons.PAUSED)
    stage.now += 3600
    stage.look()
    assert stage.phase == "Pending"
    stage.job["spec"]["paused"] = False
    assert stage.look().status is None and stage.phase == "Pending", "nobody has said yet what it waits for"
    stage.wait(reasons.WAITING_FOR_NODE_LIMIT)
    assert stage.plan().next_look == 60
    stage.now += 30
    stage.wait(reasons.WAITING_FOR_GLOBAL_LIMIT)
    assert stage.plan().next_look == 30, "another reason is not another wait"


def test_the_time_that_it_ran_is_no_waiting() -> None:
    stage = Stage(config=JobsConfig(pending_ttl=60.0)).admit()
    stage.look()
    stage.place()
    stage.now += 240
    held = Wait(reasons.ROLLOUT_IN_PROGRESS, "Deployment web is in the middle of a rollout")
    stage.carry_out(held_plan(stage.snapshot(), held, stage.now))
    assert stage.phase == "Pending"
    assert stage.look().status is None and stage.plan().next_look == 60
    stage.now += 60
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "Timeout")


def test_from_the_first_look_on_only_the_pod_that_was_seen_is_meant() -> None:
    """Trap: a pod of a StatefulSet that is made anew under its name while its job waits."""
    stage = Stage()
    stage.wait(reasons.WAITING_FOR_NODE_LIMIT)
    assert stage.status["podUID"] == "pod-1"
    stage.wait(reasons.PAUSED, pod_uid="pod-2")
    assert stage.status["podUID"] == "pod-1"


def test_to_be_sent_back_rests_on_the_pod_being_where_it_was() -> None:
    """Also of a job that has made nothing that could be undone: its eviction may be under way."""
    stage = Stage(mode="EvictDirectly").admit()
    plan = stage.look()
    assert plan.evict is not None and not undoes(plan)
    assert stage.old is not None
    del stage.old["metadata"]["deletionTimestamp"]  # as a cache shows it that is behind
    held = Wait(reasons.WAITING_FOR_NODE_LIMIT, "2 are")
    assert undoes(held_plan(stage.snapshot(), held, stage.now))


def test_one_that_waits_loses_its_pod() -> None:
    stage = Stage().ends()
    stage.look()
    assert (stage.phase, stage.reason) == ("Failed", "MissingPod")


def test_it_is_kept_for_a_while_when_it_is_over() -> None:
    stage = Stage(config=JobsConfig(finished_job_ttl=600.0))
    _abort(stage)
    stage.look()
    kept = stage.look()
    assert kept.delete is None and kept.next_look == 600
    stage.now += 600
    assert stage.look().delete is not None


def test_a_limit_right_before_the_eviction_sends_it_back() -> None:
    """A workload in the middle of a rollout: a job already Running and not yet evicting goes back to Pending."""
    stage = Stage().admit()
    stage.look()
    stage.place()
    stage.carry_out(held_plan(stage.snapshot(), Wait(reasons.ROLLOUT_IN_PROGRESS, "Deployment web rolls out"), stage.now))
    assert (stage.phase, stage.reason) == ("Pending", "RolloutInProgress") and stage.reservation is None


def test_a_budget_right_before_the_eviction_is_waited_for() -> None:
    stage = Stage(ttl="8s").admit()
    stage.look()
    stage.place()
    held = held_plan(stage.snapshot(), Wait(reasons.WAITING_FOR_DISRUPTION_BUDGET, "none left"), stage.now)
    stage.carry_out(held)
    assert (stage.phase, stage.reason) == ("Running", "WaitingForDisruptionBudget") and held.next_look == 8
    assert stage.reservation is not None and stage.look().evict is not None


def test_what_may_never_be_moved_fails_right_before_the_eviction() -> None:
    stage = Stage().admit()
    stage.carry_out(held_plan(stage.snapshot(), Refused(reasons.FORBIDDEN_MIGRATE_POD, "too important"), stage.now))
    assert (stage.phase, stage.reason) == ("Failed", "ForbiddenMigratePod")


@pytest.mark.parametrize(
    ("budget", "final", "phase", "reason", "told"),
    [
        (True, False, "Running", "WaitingForDisruptionBudget", "Evicting"),
        (False, False, "Running", "FailedEvict", "FailedEvict"),
        (False, True, "Failed", "FailedEvict", "FailedEvict"),
    ],
)
def test_an_eviction_that_is_refused_says_so(budget: bool, final: bool, phase: str, reason: str, told: str) -> None:
    stage = Stage().admit()
    stage.look()
    stage.place()
    stage.job["status"] = stage.plan().status
    stage.carry_out(eviction_refused(stage.snapshot(), "no", stage.now, budget=budget, final=final, retry=3.0))
    assert (stage.phase, stage.reason) == (phase, reason) and stage.conditions()["Eviction"] == ("False", told)


def test_what_a_server_answers_at_length_is_shortened() -> None:
    stage = Stage().admit()
    stage.look()
    stage.carry_out(eviction_refused(stage.snapshot(), "x" * 100_000, stage.now, budget=True, final=False, retry=3.0))
    assert len(stage.status["message"]) <= 1025
    stage.carry_out(reservation_refused(stage.snapshot(), "x" * 100_000, stage.now))
    assert len(stage.status["message"]) <= 1025


def test_an_eviction_that_was_refused_is_tried_again() -> None:
    stage = Stage().admit()
    stage.look()
    stage.place()
    stage.job["status"] = stage.plan().status
    stage.carry_out(eviction_refused(stage.snapshot(), "no", stage.now, budget=False, final=False, retry=3.0))
    assert stage.look().evict is not None


def test_a_reservation_that_the_server_refuses_fails_the_job() -> None:
    stage = Stage().admit()
    stage.carry_out(reservation_refused(stage.snapshot(), "quota", stage.now))
    assert (stage.phase, stage.reason) == ("Failed", "FailedCreateReservation")


# --- EvictDirectly, and pods without a node ---------------------------------------------------------------------------------------


def test_evict_directly_reserves_nothing_and_waits_for_the_end_of_the_pod() -> None:
    stage = Stage(mode="EvictDirectly").admit()
    plan = stage.look()
    assert plan.evict is not None and plan.create_reservation is None and not plan.hold
    stage.look()
    assert stage.phase == "Running" and stage.conditions()["Eviction"][0] == "False"
    stage.ends().look()
    assert stage.phase == "Succeed" and stage.conditions()["Eviction"] == ("True", "EvictComplete")


def test_a_failed_bare_pod_is_evicted_directly() -> None:
    stage = Stage(owner=None)
    assert stage.old is not None
    stage.old["status"] = {"phase": "Failed"}
    stage.admit()
    assert stage.status["strategy"] == "Eviction" and stage.look().evict is not None


def test_a_pod_without_a_node_gets_room_and_is_not_evicted() -> None:
    stage = Stage(node="")
    assert stage.old is not None
    stage.old["status"] = {"phase": "Pending"}
    stage.admit()
    made = stage.look().create_reservation
    assert made is not None and made["spec"]["owners"] == [
        {"object": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web-1", "uid": "pod-1"}}
    ]
    stage.place()
    opened = stage.look()
    assert opened.open_reservation and opened.evict is None
    stage.old["spec"]["nodeName"] = "b"
    stage.look()
    assert stage.phase == "Succeed" and stage.status["nodeName"] == "b" and stage.conditions()["PodScheduled"][0] == "True"
    assert stage.look().delete_reservation is not None, "it was placed without the room"


@pytest.mark.parametrize(
    ("label", "setting", "policy"),
    [("", "Eviction", "Eviction"), ("", "Delete", "Delete"), ("Eviction", "Delete", "Eviction"), ("x", "Delete", "Delete")],
)
def test_how_the_pod_is_ended_its_own_label_says_or_the_configuration(label: str, setting: Any, policy: str) -> None:
    stage = Stage(mode="EvictDirectly", config=JobsConfig(eviction_policy=setting))
    assert stage.old is not None
    stage.old["metadata"]["labels"] = {labels.EVICT_POLICY: label} if label else {}
    evict = stage.admit().look().evict
    assert evict is not None and evict.policy == policy


def test_delete_options_are_those_of_the_job() -> None:
    stage = Stage(mode="EvictDirectly", deleteOptions={"gracePeriodSeconds": 7, "propagationPolicy": "Foreground"}).admit()
    evict = stage.look().evict
    assert evict is not None and evict.options == {"gracePeriodSeconds": 7, "propagationPolicy": "Foreground"}


def test_held_right_before_its_eviction_a_job_says_that_it_has_its_room() -> None:
    stage = Stage().admit()
    stage.look()
    stage.look()
    stage.place()
    wait = Wait(reasons.WAITING_FOR_DISRUPTION_BUDGET, "budget web allows none")
    plan = held_plan(stage.snapshot(), wait, stage.now)
    stage.carry_out(plan)
    assert stage.conditions() == {
        "ReservationCreated": ("True", "ReservationCreated"),
        "ReservationScheduled": ("True", "ReservationScheduled"),
    }
    assert (stage.phase, stage.reason, stage.status["status"]) == ("Running", wait.reason, "ReservationScheduled")
    assert [event.reason for event in plan.events] == ["ReservationScheduled"]
    assert held_plan(stage.snapshot(), wait, stage.now + 100).status == stage.status
