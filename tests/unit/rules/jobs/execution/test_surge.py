"""Replacement first: who is moved so, step by step, what is taken back, and a controller that ends in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from herder.api import labels, reasons
from herder.api.core import DaemonSet, Deployment, ReplicaSet, StatefulSet
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.limits import Wait
from herder.rules.jobs.execution.pod_release import is_released, would_adopt
from herder.rules.jobs.execution.status import is_over, phase_of
from herder.rules.jobs.execution.surge import SURGE, needs_no_budget_yet, surges, why_no_surge
from tests.unit.rules.jobs.execution.surge_world import DEPLOYMENT, HASH, OLD, SET, TTL, Crash, Json, World

NEW = "web-h1-1"


def _deployment(strategy: Json, replicas: int = 1, said: str = "", **meta: str) -> Deployment:
    annotations = {labels.SURGE: said} if said else {}
    metadata = {"name": "web", "namespace": "shop", "uid": "deployment", "annotations": annotations, **meta}
    return msgspec.convert({"metadata": metadata, "spec": {"replicas": replicas, "strategy": strategy}}, Deployment)


def _rolling(surge: int | str) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 1}}


# --- whether ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_job", "on_deployment", "strategy", "expected"),
    [
        ("true", "", _rolling("25%"), True),
        ("", "true", _rolling(1), True),
        ("", "", _rolling(1), False),
        ("false", "true", _rolling(1), False),
        ("true", "false", _rolling(1), True),
        ("true", "", _rolling(0), False),
        ("true", "", _rolling("0%"), False),
        ("true", "", {"type": "Recreate"}, False),
    ],
)
def test_a_pod_is_replaced_first_where_the_job_or_its_deployment_asks_and_the_deployment_may_surge(
    on_job: str, on_deployment: str, strategy: Json, expected: bool
) -> None:
    world = World()
    assert world.job is not None and world.old is not None
    world.job["metadata"]["annotations"] = {labels.SURGE: on_job} if on_job else {}
    job, pod = world.view_of_job, world.view(world.old)
    deployment = _deployment(strategy, said=on_deployment)
    assert surges(job, pod, deployment) is expected
    asked = on_job == "true" or (not on_job and on_deployment == "true")
    assert bool(why_no_surge(job, pod, deployment)) is (asked and not expected)


def test_who_asks_for_it_in_vain_is_told_why() -> None:
    world = World()
    assert world.old is not None
    job, pod = world.view_of_job, world.view(world.old)
    assert "maxSurge of Deployment web allows no pod beyond its 3" in why_no_surge(job, pod, _deployment(_rolling(0), 3))
    assert "pod shop/web-h1-0 is not of a Deployment" in why_no_surge(job, pod, None)
    going = _deployment(_rolling(1), deletionTimestamp="2026-01-01T00:00:00Z")
    assert not surges(job, pod, going)
    bare = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=None))
    assert "is not kept by a ReplicaSet" in why_no_surge(job, bare, _deployment(_rolling(1)))
    unlabelled = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels={"app": "web"}))
    assert not surges(job, unlabelled, _deployment(_rolling(1)))


def test_budgets_are_asked_once_the_pod_is_let_go_and_by_jobs_that_only_evict() -> None:
    def free(world: World, **config: str) -> bool:
        assert world.old is not None
        settings = JobsConfig(**config)  # pyright: ignore[reportArgumentType]
        return needs_no_budget_yet(world.view_of_job, world.view(world.old), world.deployment, settings)

    world = World()
    assert free(world) and not free(world, default_job_mode="EvictDirectly")
    world.arbitrate()
    assert free(world)
    assert world.job is not None
    world.job["status"]["strategy"] = "Reservation"
    assert not free(world), "it was admitted before somebody asked for it"
    assert not free(_let_go())


def test_who_would_take_in_a_pod_that_is_let_go_is_known() -> None:
    def thing(kind: type[Any], name: str, wanted: Json, **meta: str) -> Any:
        return msgspec.convert({"metadata": {"name": name, **meta}, "spec": {"selector": {"matchLabels": wanted}}}, kind)

    world = World()
    assert world.old is not None and world.replica_set is not None
    web = {"app": "web"}
    others = [
        world.replica_set,
        thing(ReplicaSet, "all-web", web),
        thing(ReplicaSet, "going", web, deletionTimestamp="2026-01-01T00:00:00Z"),
        thing(ReplicaSet, "other", {"app": "other"}),
        thing(DaemonSet, "agents", web),
        thing(StatefulSet, "db", web),
        thing(StatefulSet, "web-h1", web),
        thing(ReplicaSet, "empty", {}),
    ]
    assert would_adopt(world.view(world.old), others) == ("DaemonSet agents", "ReplicaSet all-web", "StatefulSet web-h1")


# --- step by step ----------------------------------------------------------------------------------------------------------------


def _reserved(*, comes_up: bool = True, min_ready: int = 0) -> World:
    """Room is there, and the pod is not let go yet."""
    world = World(1, 1, comes_up=comes_up, min_ready=min_ready)
    world.arbitrate()
    world.look()
    world.place()
    return world


def _let_go(*, comes_up: bool = True, min_ready: int = 0) -> World:
    world = _reserved(comes_up=comes_up, min_ready=min_ready)
    world.look()
    assert world.old is not None and HASH not in world.old["metadata"]["labels"]
    return world


def _replaced(*, comes_up: bool = True, min_ready: int = 0) -> World:
    """Its replacement has the room, and is ready unless it does not come up."""
    world = _let_go(comes_up=comes_up, min_ready=min_ready)
    world.sync_set()
    world.place()
    world.run_nodes()
    return world


def _message(world: World) -> str:
    assert world.job is not None
    return world.job["status"]["message"]


def _outcome(world: World) -> tuple[str, str | None]:
    assert world.job is not None
    return world.job["status"]["phase"], world.job["status"].get("reason")


def test_a_lone_replica_that_a_budget_keeps_is_moved_and_never_missed() -> None:
    world = _reserved()
    plan = world.look()
    assert plan.releases and plan.disrupts and not plan.paced and plan.open_reservation and plan.evict is None
    assert world.condition(reasons.EVICTION) == ("False", reasons.WAIT_FOR_REPLACEMENT)
    world.sync_set()
    assert world.serving == [OLD] and NEW in world.pods
    assert world.look().evict is None
    world.place()
    world.run_nodes()
    plan = world.look()
    assert plan.evict is not None and plan.evict.uid == f"uid-{OLD}" and plan.paced
    assert world.serving == [NEW]
    world.run_nodes()
    world.look()
    assert _outcome(world) == ("Succeed", None)
    assert world.job is not None and world.job["status"]["podRef"]["name"] == NEW and world.job["status"]["nodeName"] == "reserved"
    assert world.refused == 0


def test_a_pod_that_is_let_go_loses_no_label_but_one_and_goes_with_its_deployment() -> None:
    world = _let_go()
    assert world.old is not None
    assert world.old["metadata"]["labels"] == {"app": "web"}
    assert world.old["metadata"]["ownerReferences"] == [{**SET, "controller": True}, DEPLOYMENT]
    world.sync_set()
    assert world.old["metadata"]["ownerReferences"] == [DEPLOYMENT]
    world.delete_deployment()
    world.collect_garbage()
    world.run_nodes()
    assert world.old is None
    world.look()
    world.look()
    assert _outcome(world)[1] == reasons.NO_REPLACEMENT


def test_without_room_the_pod_is_never_let_go() -> None:
    world = World(has_room=False)
    world.settle()
    assert _outcome(world) == ("Failed", reasons.TIMEOUT)
    assert list(world.pods) == [OLD] and world.old is not None
    assert world.old["metadata"]["labels"][HASH] == "h1" and world.reservation is None


def test_a_replacement_that_is_ready_for_too_short_a_time_does_not_count_yet() -> None:
    world = _replaced(min_ready=30)
    plan = world.look()
    assert plan.evict is None and plan.next_look == 30 and "minReadySeconds" in _message(world)
    world.pass_time(30)
    assert world.look().evict is not None


def test_a_replacement_that_is_no_longer_ready_keeps_the_old_pod_from_being_evicted() -> None:
    world = _replaced()
    world.min_available = 2
    world.look()
    assert world.refused == 1
    world.pods[NEW]["status"] = {"phase": "Running"}
    assert world.look().evict is None
    assert world.condition(reasons.EVICTION) == ("False", reasons.WAIT_FOR_REPLACEMENT)


def test_a_pod_that_somebody_else_would_take_in_is_not_let_go() -> None:
    world = _reserved()
    plan = SURGE.advance(msgspec.structs.replace(world.snapshot(), would_adopt=("ReplicaSet all-web",)), world.now)
    assert not plan.patch_pods and plan.status is not None
    assert plan.status["phase"] == "Failed" and "ReplicaSet all-web would take it in" in plan.status["message"]


def test_a_pod_whose_deployment_was_taken_away_from_its_replica_set_is_not_let_go() -> None:
    """It would name nobody but the Deployment as its owner, and go as garbage before there is another one."""
    world = _reserved()
    world.deployment_there = False
    world.look()
    assert _outcome(world) == ("Failed", reasons.FORBIDDEN_MIGRATE_POD)
    _assert_taken_back(world)


def test_as_many_pods_are_replaced_first_at_once_as_the_deployment_may_have_too_many() -> None:
    world = _reserved()
    crowded = msgspec.structs.replace(world.snapshot(), surging_before=1)
    plan = SURGE.advance(crowded, world.now)
    assert not plan.patch_pods and plan.next_look and plan.status is not None
    assert plan.status["phase"] == "Running" and "maxSurge of Deployment web allows 1 beyond its 1" in plan.status["message"]
    assert SURGE.advance(world.snapshot(), world.now).releases


def test_a_pod_that_waits_for_a_node_would_take_the_room_and_is_waited_for() -> None:
    world = _reserved()
    world.scale(2)
    world.sync_set()
    assert not world.look().releases and "would take the room" in _message(world)


def test_an_eviction_that_is_refused_is_tried_again_without_a_word_each_time() -> None:
    world = _replaced()
    world.min_available = 2
    world.look()
    plan = world.look()
    assert plan.evict is not None and plan.status is None and not plan.events and world.refused == 2
    world.min_available = 1
    world.settle()
    assert _outcome(world) == ("Succeed", None)


# --- taken back ------------------------------------------------------------------------------------------------------------------


def _assert_taken_back(world: World) -> None:
    """As if there had never been a job."""
    world.look()
    world.look()
    world.sync_set()
    world.run_nodes()
    assert list(world.pods) == [OLD] and world.old is not None and world.serving == [OLD]
    assert world.old["metadata"]["ownerReferences"] == [{**SET, "controller": True}]
    assert world.old["metadata"]["labels"] == {"app": "web", HASH: "h1"}
    assert world.job is None or not is_over(world.view_of_job) or not world.job["metadata"]["finalizers"]


def _forget_room(world: World) -> None:
    world.reservation = None


ENDS: dict[str, tuple[Callable[[World], None], tuple[str, str]]] = {
    "time is over": (lambda world: world.pass_time(TTL), ("Failed", reasons.TIMEOUT)),
    "aborted": (World.abort, ("Aborted", reasons.ABORTED)),
    "paused": (World.pause, ("Pending", reasons.PAUSED)),
    "room is gone": (_forget_room, ("Failed", reasons.MISSING_RESERVATION)),
}


@pytest.mark.parametrize("ending", ENDS)
@pytest.mark.parametrize("noticed", [True, False], ids=["let go", "not noticed by the ReplicaSet"])
def test_what_does_not_come_up_ends_with_the_old_pod_back_where_it_was(ending: str, noticed: bool) -> None:
    world = _let_go()
    if noticed:
        world.sync_set()
    deed, outcome = ENDS[ending]
    deed(world)
    world.look()
    assert _outcome(world) == outcome
    _assert_taken_back(world)
    assert world.reservation is None


def test_a_deleted_job_gives_its_pod_back_before_it_goes() -> None:
    world = _replaced(comes_up=False)
    world.delete_job()
    _assert_taken_back(world)
    assert world.job is None


def test_a_deleted_job_gives_its_pod_back_before_it_goes_also_where_the_room_was_given_to_it() -> None:
    world = World(comes_up=False)
    assert world.job is not None
    world.job["spec"]["reservationOptions"] = {"reservationRef": {"name": "mine"}}
    owners = [{"labelSelector": {"matchLabels": {"app": "web"}}}]
    template = {"metadata": {"namespace": "shop"}, "spec": {"containers": [{"name": "c"}]}}
    world.reservation = {
        "metadata": {"name": "mine", "uid": "room"},
        "spec": {"owners": owners, "template": template, "unschedulable": False},
        "status": {"phase": "Available", "nodeName": "reserved"},
    }
    world.arbitrate()
    world.look()
    assert world.old is not None and is_released(world.view_of_job, world.view(world.old))
    world.delete_job()
    assert world.job is not None, "it goes when the pod is where it was"
    _assert_taken_back(world)
    assert world.job is None


def test_a_limit_that_holds_the_eviction_sends_the_job_back_and_the_pod_too() -> None:
    world = _replaced()
    world.look(held=Wait(reasons.WAITING_FOR_GLOBAL_LIMIT, "1 migrates, and 1 may at once"))
    assert _outcome(world) == ("Pending", reasons.WAITING_FOR_GLOBAL_LIMIT)
    _assert_taken_back(world)


def test_a_replacement_that_vanishes_ends_it_and_the_old_pod_is_taken_back() -> None:
    world = _replaced(comes_up=False)
    world.look()
    world.tell_to_end(NEW)
    world.run_nodes()
    world.look()
    assert _outcome(world) == ("Failed", reasons.NO_REPLACEMENT)
    world.sync_set()
    _assert_taken_back(world)


def test_where_nobody_is_wanted_any_more_the_old_pod_is_left_to_its_replica_set() -> None:
    """Which ends it: a budget does not hold what people have scaled away."""
    world = _let_go()
    world.scale(0)
    world.look()
    assert _outcome(world) == ("Failed", reasons.NO_REPLACEMENT)
    world.look()
    world.sync_set()
    world.run_nodes()
    assert not world.pods


def test_a_pod_whose_replica_set_is_gone_is_left_to_the_garbage_collector() -> None:
    world = _let_go()
    world.sync_set()
    world.roll_out()
    world.set_there = False
    world.settle()
    assert OLD not in world.pods and world.serving == ["web-h2-0"]


def test_who_has_taken_the_pod_in_meanwhile_keeps_it() -> None:
    world = _let_go()
    world.sync_set()
    assert world.old is not None
    world.old["metadata"]["ownerReferences"].append({**SET, "name": "all-web", "uid": "other", "controller": True})
    world.look()
    assert _outcome(world) == ("Failed", reasons.FORBIDDEN_MIGRATE_POD) and "ReplicaSet all-web" in _message(world)
    world.look()
    assert [one["uid"] for one in world.old["metadata"]["ownerReferences"]] == ["other"]


def test_a_label_that_somebody_restores_ends_the_job_and_is_not_fought_over() -> None:
    world = _let_go()
    world.sync_set()
    world.restore_label()
    world.sync_set()
    world.look()
    assert _outcome(world) == ("Failed", reasons.FORBIDDEN_MIGRATE_POD) and "by somebody else" in _message(world)
    _assert_taken_back(world)


def test_a_pod_that_somebody_set_apart_is_left_apart() -> None:
    world = _reserved()
    assert world.old is not None
    del world.old["metadata"]["labels"][HASH]
    world.sync_set()
    world.look()
    assert _outcome(world)[1] == reasons.FORBIDDEN_MIGRATE_POD
    world.look()
    assert HASH not in world.old["metadata"]["labels"]


# --- where the controller ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_controller_that_ends_while_it_lets_go_is_taken_up_where_it_was(writes: int) -> None:
    """Nothing, the word that it begins, the open room: the next look does the rest."""
    world = _reserved()
    with pytest.raises(Crash):
        world.look(crash_after=writes)
    assert world.old is not None and not is_released(world.view_of_job, world.view(world.old))
    world.settle()
    assert _outcome(world) == ("Succeed", None) and world.serving == [NEW]


@pytest.mark.parametrize("writes", [0, 1])
def test_a_controller_that_ends_while_it_sends_a_job_back_still_gives_the_pod_back(writes: int) -> None:
    """Before, and after the job was written to wait: whose pod is away is known by the pod."""
    world = _replaced(comes_up=False)
    world.pause()
    with pytest.raises(Crash):
        world.look(crash_after=writes)
    world.arbitrate()
    assert phase_of(world.view_of_job) == ("Running", "Pending")[writes]
    _assert_taken_back(world)


def test_an_eviction_whose_answer_was_lost_is_not_undone() -> None:
    world = _replaced()
    with pytest.raises(Crash):
        world.look(crash_after=1)
    world.tell_to_end(OLD)
    world.abort()
    world.settle()
    assert world.serving == [NEW] and list(world.pods) == [NEW]
