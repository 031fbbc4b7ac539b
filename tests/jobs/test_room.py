"""The room that a job's pod goes to: given by name, shaped by a template, or taken by somebody else (seed 004)."""

from __future__ import annotations

import pytest

from tests.engines.api import Json
from tests.engines.resources import NODES, PODS
from tests.jobs.stage import RESERVATIONS, Stage, node_of


def _named(room: str) -> Json:
    return {"reservationOptions": {"reservationRef": {"name": room}}}


async def test_a_given_reservation_is_used_as_it_is_and_never_released_by_the_job(stage: Stage) -> None:
    await stage.nodes(4, 4, 4)
    (web,) = await stage.deploy(1, "2")
    owner = [{"controller": await stage.replica_set()}]
    room = await stage.reserve("3", owner, template=_elsewhere(web))
    held = await stage.reservation_shows(room, phase="Available")
    # Given up before its eviction.
    paused = await stage.file(web, paused=True, **_named(room))
    await stage.abort(paused)
    await stage.ends(paused, "Aborted", "Aborted")
    await stage.reservation_shows(room, phase="Available")
    done = await stage.ends(await stage.file(web, **_named(room)), "Succeed")
    (moved,) = await stage.ready(1)
    assert node_of(moved) == held["status"]["nodeName"] == done["status"]["nodeName"]
    over = await stage.reservation_shows(room, phase="Succeeded")
    assert [one["uid"] for one in over["status"]["currentOwners"]] == [moved["metadata"]["uid"]]


def _elsewhere(pod: Json) -> Json:
    away = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [node_of(pod)]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [away]}}}}


async def test_a_given_reservation_that_is_pending_is_waited_for(stage: Stage) -> None:
    await stage.nodes(4, 4)
    await stage.deploy(1, "3", name="full")
    (web,) = await stage.deploy(1, "3")
    room = await stage.reserve("3", [{"controller": await stage.replica_set()}], template=_elsewhere(web))
    job = await stage.file(web, ttl="1h", **_named(room))
    await stage.has_condition(job, "ReservationScheduled", "False", "Unschedulable", says="Insufficient cpu")
    await stage.is_untouched(web)
    await stage.scale(0, "full")
    await stage.ends(job, "Succeed")


async def test_a_given_reservation_that_is_not_right_ends_the_job_and_leaves_the_pod_alone(stage: Stage) -> None:
    """Every way in which it may be wrong, for one pod after the other job."""
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "1")
    mine = [{"controller": await stage.replica_set()}]
    await _refused(stage, web, "nowhere", "MissingReservation", "is not there")
    too_small = await stage.reserve("500m", mine, template=_elsewhere(web))
    await _refused(stage, web, too_small, "ForbiddenMigratePod", "too little cpu")
    for_others = await stage.reserve("1", [{"labelSelector": {"matchLabels": {"app": "other"}}}], template=_elsewhere(web))
    await _refused(stage, web, for_others, "ForbiddenMigratePod", "is not for the pods that would take the place of")
    by_name = await stage.reserve("1", [{"object": {"kind": "Pod", "name": web["metadata"]["name"]}}], template=_elsewhere(web))
    await _refused(stage, web, by_name, "ForbiddenMigratePod", "is not for the pods that would take the place of")
    closed = await stage.reserve("1", mine, unschedulable=True, template=_elsewhere(web))
    await _refused(stage, web, closed, "ForbiddenMigratePod", "is closed")
    expired = await stage.reserve("1", mine, ttl="1s", template=_elsewhere(web))
    await stage.reservation_shows(expired, phase="Failed")
    await _refused(stage, web, expired, "ForbiddenMigratePod", "is over")
    here = await stage.reserve("1", mine, template={"affinity": _at(web)})
    await stage.reservation_shows(here, phase="Available", nodeName=node_of(web))
    await _refused(stage, web, here, "ForbiddenMigratePod", "is already")


async def _refused(stage: Stage, pod: Json, room: str, reason: str, says: str) -> None:
    await stage.ends(await stage.file(pod, ttl="1h", **_named(room)), "Failed", reason, says=says)
    await stage.is_untouched(pod)


def _at(pod: Json) -> Json:
    there = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_of(pod)]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [there]}}}


async def test_of_two_jobs_that_name_one_reservation_one_keeps_it(stage: Stage) -> None:
    """Of four replicas two may migrate. The first keeps it; times are whole seconds, so either may be the first."""
    await stage.nodes(4, 4)
    await stage.deploy(1, "3", name="full")
    first, second, *_ = await stage.deploy(4, "500m", **_on_the_other(await stage.pods("full")))
    room = await stage.reserve("3", [{"controller": await stage.replica_set()}], template=_elsewhere(first))
    pods = {await stage.file(pod, ttl="1h", **_named(room)): pod for pod in (first, second)}

    async def refused() -> str:
        statuses = {job: (await stage.job(job)).get("status", {}) for job in pods}
        (failed,) = [job for job, status in statuses.items() if status.get("phase") == "Failed"] or [""]
        assert failed, statuses
        return failed

    failed = await stage.herd.eventually(refused)
    (other,) = [job for job in pods if job != failed]
    await stage.ends(failed, "Failed", "ForbiddenMigratePod", says=f"is what PodMigrationJob {other} uses")
    await stage.scale(0, "full")
    await stage.ends(other, "Succeed")
    await stage.is_untouched(pods[failed])


def _on_the_other(pods: list[Json]) -> Json:
    """By preference: the replacement must be able to go where `full` was."""
    away = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [node_of(pods[0])]}]}
    preferred = [{"weight": 100, "preference": away}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


async def test_a_template_is_merged_over_the_pod(stage: Stage) -> None:
    first, second, third = await stage.nodes(4, 4, 4)
    (web,) = await stage.deploy(1, "1")
    chosen = next(node for node in (first, second, third) if node != node_of(web))
    (await stage.api.patch(NODES, chosen, {"metadata": {"labels": {"chosen": "yes"}}})).ok  # noqa: B018
    template: Json = {
        "metadata": {"labels": {"for": "web"}},
        "spec": {"template": {"spec": {"nodeSelector": {"chosen": "yes"}}}, "allocateOnce": False},
    }
    job = await stage.file(web, reservationOptions={"template": template})
    done = await stage.ends(job, "Succeed")
    assert done["status"]["nodeName"] == chosen
    room = await stage.reservation_of(job)
    assert room is not None
    assert room["metadata"]["labels"] == {"for": "web"}
    assert (room["spec"]["allocateOnce"], room["status"]["phase"]) == (True, "Succeeded")


async def test_a_scale_up_between_the_room_and_the_eviction_does_not_strand_who_is_evicted(stage: Stage) -> None:
    """The room is closed until the job evicts, and while a replica is missing nobody is evicted."""
    web, job, node = await stage.about_to_evict()
    await stage.scale(2)
    await stage.herd.eventually(lambda: _has_pods(stage, 2))
    await stage.allow()
    (third,) = await stage.nodes(4)
    done = await stage.ends(job, "Succeed")
    pods = await stage.ready(2)
    assert {node_of(one) for one in pods} == {node, third}
    assert done["status"]["podRef"]["uid"] in {one["metadata"]["uid"] for one in pods}
    assert web["metadata"]["uid"] not in {one["metadata"]["uid"] for one in pods}


async def _has_pods(stage: Stage, count: int) -> bool:
    return len(await stage.pods()) == count


async def test_room_that_somebody_deletes_is_not_evicted_for(stage: Stage) -> None:
    web, job, _ = await stage.about_to_evict()
    room = await stage.reservation_of(job)
    assert room is not None
    (await stage.api.delete(RESERVATIONS, room["metadata"]["name"])).ok  # noqa: B018
    await stage.ends(job, "Failed", "MissingReservation", says="deleted")
    await stage.is_untouched(web)


async def test_a_reservation_of_the_name_that_the_jobs_would_have_is_not_taken_for_it(stage: Stage) -> None:
    """Whoever sees the job knows its uid, and could make one before us."""
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "1")
    job = await stage.file(web, paused=True)
    uid = (await stage.job(job))["metadata"]["uid"]
    spec = {
        "template": {"metadata": {"namespace": stage.namespace}, "spec": stage.pod_spec("1")},
        "owners": [{"labelSelector": {"matchLabels": {"app": "mine"}}}],
    }
    theirs = (await stage.api.create(RESERVATIONS, {"metadata": {"name": f"job-{uid}"}, "spec": spec})).ok
    await stage.change_job(job, paused=False)
    await stage.ends(job, "Failed", "FailedCreateReservation", says="belongs to someone else")
    await stage.is_untouched(web)
    found = (await stage.api.get(RESERVATIONS, f"job-{uid}")).ok
    assert (found["metadata"]["uid"], found["spec"]) == (theirs["metadata"]["uid"], theirs["spec"])
    await stage.api.delete(RESERVATIONS, f"job-{uid}")


async def test_a_replacement_goes_to_its_room_and_not_back_to_where_it_left(stage: Stage) -> None:
    """One on each node, and by preference where it was: both would put it back."""
    home, *_ = await stage.nodes(4, 4, 4)
    (await stage.api.patch(NODES, home, {"metadata": {"labels": {"home": "yes"}}})).ok  # noqa: B018
    pods = await stage.deploy(2, "1", **_apart_and_rather_at_home())
    (at_home,) = [one for one in pods if node_of(one) == home]
    job = await stage.file(at_home)
    done = await stage.ends(job, "Succeed")
    assert done["status"]["nodeName"] not in {node_of(one) for one in pods}
    left = [one for one in await stage.ready(2) if one["metadata"]["uid"] != done["status"]["podRef"]["uid"]]
    assert [one["metadata"]["uid"] for one in left] == [one["metadata"]["uid"] for one in pods if one is not at_home]
    # Without a job it does go back: the preference is what it was.
    await stage.herd.delete(done["status"]["podRef"]["name"], PODS)
    back = await stage.replacement_of(*pods, {"metadata": {"uid": done["status"]["podRef"]["uid"]}})
    assert node_of(back) == home


def _apart_and_rather_at_home() -> Json:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    at_home = {"matchExpressions": [{"key": "home", "operator": "In", "values": ["yes"]}]}
    preferred = [{"weight": 100, "preference": at_home}]
    return {
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred},
        }
    }


@pytest.mark.parametrize("gone", ["deleted", "cordoned", "tainted"])
async def test_a_node_that_goes_between_the_room_and_the_eviction_is_replaced_by_another(stage: Stage, gone: str) -> None:
    web, job, node = await stage.about_to_evict()
    if gone == "cordoned":
        await stage.cordon(node)
    elif gone == "tainted":
        taints = (await stage.api.get(NODES, node)).ok["spec"].get("taints") or []
        taint = {"key": "tests.example.com/broken", "effect": "NoSchedule"}
        (await stage.api.patch(NODES, node, {"spec": {"taints": [*taints, taint]}})).ok  # noqa: B018
    else:
        (await stage.api.patch(NODES, node, {"metadata": {"finalizers": None}})).ok  # noqa: B018
        (await stage.api.delete(NODES, node)).ok  # noqa: B018
    await stage.has_condition(job, "ReservationScheduled", "False", "Unschedulable")
    await stage.allow()
    await stage.is_untouched(web)
    (third,) = await stage.nodes(4)
    done = await stage.ends(job, "Succeed")
    assert done["status"]["nodeName"] == third
