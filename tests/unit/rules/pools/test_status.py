"""What a pool shows."""

from typing import Any

from herder.api.kinds import VirtualMachinePool
from herder.rules.pools import plan_pool
from herder.rules.pools.snapshot import Refusal
from herder.rules.pools.status import named

from .things import NOW, A, B, Json, at, member, name_of, pool, snapshot, starting


def shown(of: VirtualMachinePool, *members: Any, **more: Any) -> Json:
    return plan_pool(snapshot(of, *members, **more), NOW).status


def condition(status: Json, kind: str) -> Json:
    return next(one for one in status["conditions"] if one["type"] == kind)


def test_counts_of_a_pool_in_mid_rollout() -> None:
    status = shown(pool(4, B), member(1, B), member(2), starting(3, B), wanted=B, stored=(A,))
    counts = {name: status[name] for name in ("replicas", "readyReplicas", "updatedReplicas", "unavailableReplicas")}
    assert counts == {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 2, "unavailableReplicas": 2}
    assert (status["observedGeneration"], status["labelSelector"]) == (7, "herder.dev/pool=web")
    assert (status["updateRevision"], "currentRevision" in status) == (name_of(B), False)
    assert condition(status, "Available")["status"] == "False"


def test_the_current_revision_is_the_last_one_that_all_had_and_were_available_with() -> None:
    before = {"currentRevision": name_of(A)}
    assert shown(pool(2, B, before), member(1, B), member(2), wanted=B)["currentRevision"] == name_of(A)
    assert shown(pool(2, B, before), member(1, B), wanted=B)["currentRevision"] == name_of(A)
    young = member(2, B, ready_since=NOW - 5)
    assert shown(pool(2, B, before, minReadySeconds=10), member(1, B), young, wanted=B)["currentRevision"] == name_of(A)
    assert shown(pool(2, B, before), member(1, B), young, wanted=B)["currentRevision"] == name_of(B)


def test_three_hundred_detached_machines_leave_the_status_writable() -> None:
    names = tuple(f"web-{number}" for number in range(1, 301))
    status = shown(pool(1), member(301), detached=names, held=frozenset(names))
    assert (status["detachedReplicas"], status["detached"]) == (300, list(names[:256]))


def test_messages_are_bounded_however_many_machines_there_are() -> None:
    refused = {f"web-{number}": Refusal("x" * 100_000, NOW + 10) for number in range(1, 500)}
    status = shown(pool(500), refusals=refused)
    assert max(len(one["message"]) for one in status["conditions"]) <= 2000
    assert named([f"web-{number}" for number in range(1, 9)]) == "web-1, web-2, web-3, web-4, web-5, and 3 more"


def test_a_volume_of_somebody_else_is_named() -> None:
    status = shown(pool(1), starting(1, volume_not_owned="DataVolume disk-1 exists and belongs to someone else"))
    failure = condition(status, "ReplicaFailure")
    assert (failure["reason"], failure["message"]) == (
        "VolumeNotOwned",
        "web-1: DataVolume disk-1 exists and belongs to someone else",
    )


def test_a_paused_pool_does_nothing_and_shows_what_there_is() -> None:
    plan = plan_pool(snapshot(pool(1, B, paused=True), member(1), member(2), wanted=B), NOW)
    assert (plan.update, plan.remove, plan.create, plan.create_revision, plan.forget) == ((), (), (), None, ())
    assert (plan.status["replicas"], plan.status["surplusReplicas"]) == (2, 1)
    assert condition(plan.status, "Paused")["status"] == "True"


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    old = {"type": "Available", "status": "True", "reason": "x", "lastTransitionTime": at(-500)}
    assert condition(shown(pool(1, A, {"conditions": [old]}), member(1)), "Available")["lastTransitionTime"] == at(-500)
    assert condition(shown(pool(3, A, {"conditions": [old]}), member(1)), "Available")["lastTransitionTime"] == at(0)


def test_a_status_that_was_written_leads_to_the_same_status_again() -> None:
    members = [member(1, B), member(2), starting(3)]
    first = shown(pool(3, B), *members, wanted=B)
    assert shown(pool(3, B, first), *members, wanted=B) == first
