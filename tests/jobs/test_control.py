"""What people may do to a job while it waits or runs: pause, resume, abort, delete; and the time that it has (seed 004)."""

from __future__ import annotations

from typing import Any

import pytest

from herder.api import labels
from tests.engines.api import Json
from tests.engines.resources import DEPLOYMENTS, PODS
from tests.jobs.stage import GATE, JOBS, RESERVATIONS, Stage, node_of

GATED = [{"conditionType": GATE}]


async def _evicted(stage: Stage, **spec: Any) -> tuple[Json, str, Json]:
    """A pod, its job, and its replacement, which has its room and is not ready."""
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "3", readinessGates=GATED)
    await stage.let_in(web)
    await stage.ready(1)
    job = await stage.file(web, **spec)
    replacement = await stage.replacement_of(web)
    await stage.has_condition(job, "PodBoundReservation", "True")
    return web, job, replacement


async def _is_gone(stage: Stage, job: str) -> None:
    async def look() -> bool:
        return (await stage.api.get(JOBS, job)).code == 404

    await stage.herd.eventually(look)


async def test_a_job_that_is_paused_from_the_beginning_holds_nothing_and_then_goes_its_way(stage: Stage) -> None:
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "3")
    job = await stage.file(web, paused=True)
    waits = await stage.shows(job, "Pending", "Paused")
    assert "startTime" not in waits["status"]
    await stage.no_reservation_of(job)
    await stage.change_job(job, paused=False)
    await stage.ends(job, "Succeed")


async def test_paused_before_its_eviction_a_job_gives_back_its_room_and_its_time_stands_still(stage: Stage) -> None:
    web = await stage.tight()
    job = await stage.file(web, ttl="1h")
    await stage.has_condition(job, "ReservationScheduled", "False", "Unschedulable")
    await stage.change_job(job, paused=True)
    waits = await stage.shows(job, "Pending", "Paused")
    assert waits["status"].get("conditions") is None
    await stage.no_reservation_of(job)
    await stage.scale(0, "full")
    await stage.is_untouched(web)
    # Under the same name it is made again.
    await stage.change_job(job, paused=False)
    done = await stage.ends(job, "Succeed")
    assert done["spec"]["reservationOptions"]["reservationRef"]["name"] == f"job-{done['metadata']['uid']}"
    assert (await stage.reservation_of(job) or {})["status"]["phase"] == "Succeeded"


async def test_after_the_eviction_a_pause_has_no_effect(stage: Stage) -> None:
    _, job, replacement = await _evicted(stage)
    await stage.change_job(job, paused=True)
    await stage.let_in(replacement)
    await stage.ends(job, "Succeed")


@pytest.mark.parametrize("by", ["annotation", "deletion"])
async def test_given_up_before_its_eviction_a_job_leaves_nothing_behind(stage: Stage, by: str) -> None:
    web = await stage.tight()
    job = await stage.file(web, ttl="1h")
    await stage.has_condition(job, "ReservationScheduled", "False", "Unschedulable")
    room = await stage.reservation_of(job)
    assert room is not None
    if by == "annotation":
        await stage.abort(job)
        aborted = await stage.ends(job, "Aborted", "Aborted", says=labels.ABORT)
        assert not aborted["metadata"].get("finalizers") or await _loses_finalizer(stage, job)
    else:
        await stage.delete_job(job)
        await _is_gone(stage, job)

    async def released() -> bool:
        return (await stage.api.get(RESERVATIONS, room["metadata"]["name"])).code == 404

    await stage.herd.eventually(released)
    await stage.is_untouched(web)


async def _loses_finalizer(stage: Stage, job: str) -> bool:
    async def look() -> bool:
        return not (await stage.job(job))["metadata"].get("finalizers")

    return await stage.herd.eventually(look)


@pytest.mark.parametrize("by", ["annotation", "deletion"])
async def test_given_up_after_its_eviction_a_job_does_not_take_the_room_from_who_has_it(stage: Stage, by: str) -> None:
    web, job, replacement = await _evicted(stage, ttl="1h")
    if by == "annotation":
        await stage.abort(job)
        await stage.ends(job, "Aborted", "Aborted", says="on its way already")
        assert await _loses_finalizer(stage, job)
    else:
        await stage.delete_job(job)
        await _is_gone(stage, job)
    await stage.let_in(replacement)
    (ready,) = await stage.ready(1)
    assert (ready["metadata"]["uid"], node_of(ready) != node_of(web)) == (replacement["metadata"]["uid"], True)


async def test_a_job_that_finds_no_room_in_its_time_says_why_and_gives_up(stage: Stage) -> None:
    web = await stage.tight()
    job = await stage.file(web, ttl="2s")
    failed = await stage.ends(job, "Failed", "Timeout", says="Insufficient cpu")
    assert failed["status"]["ttl"] == "2s"
    await stage.no_reservation_of(job)
    await stage.is_untouched(web)
    assert "Insufficient cpu" in await stage.told(job, "Unschedulable")


async def test_a_pod_that_has_no_node_yet_gets_room_and_nothing_is_evicted(stage: Stage) -> None:
    await stage.tight()
    await stage.herd.eventually(lambda: _is_rolled_out(stage))
    await stage.herd.patch("web", {"spec": {"replicas": 2}}, DEPLOYMENTS)

    async def waiting() -> Json:
        found = [one for one in await stage.pods() if not one["spec"].get("nodeName")]
        assert len(found) == 1
        return found[0]

    pod = await stage.herd.eventually(waiting)
    job = await stage.file(pod, ttl="1h")
    await stage.has_condition(job, "ReservationScheduled", "False", "Unschedulable")
    await stage.scale(0, "full")
    done = await stage.ends(job, "Succeed")
    placed = (await stage.api.get(PODS, pod["metadata"]["name"], stage.namespace)).ok
    assert placed["metadata"]["uid"] == pod["metadata"]["uid"] == done["status"]["podRef"]["uid"]
    assert done["status"]["nodeName"] == node_of(placed)
    assert "Eviction" not in [one["type"] for one in done["status"]["conditions"]]


async def _is_rolled_out(stage: Stage) -> bool:
    """Scaled before it says so, it would be in the middle of a rollout until the pod that waits is there."""
    return (await stage.api.get(DEPLOYMENTS, "web", stage.namespace)).ok.get("status", {}).get("availableReplicas") == 1
