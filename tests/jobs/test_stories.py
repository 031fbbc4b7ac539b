"""The three stories of the seed (004): why pods are moved by jobs and not just evicted."""

from __future__ import annotations

from collections.abc import Callable

from herder.api.roles import roles
from tests.engines.api import Api, Json
from tests.engines.credentials import grant, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.resources import NODES, PODS
from tests.jobs.stage import GATE, JOBS, Stage, condition_of, node_of
from tests.machines.herd import PATIENCE

GATED = [{"conditionType": GATE}]


async def _evict(stage: Stage, pod: Json) -> None:
    name = pod["metadata"]["name"]
    path = PODS.path(stage.namespace, name, "eviction")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": stage.namespace}}
    (await stage.api.request("POST", path, body)).ok  # noqa: B018


async def test_story_1_where_room_is_scarce_an_evicted_pod_stays_pending_and_a_moved_one_never_does(stage: Stage) -> None:
    """Two nodes, each full; then one of them is to be emptied."""
    await stage.nodes(4, 4)
    await stage.deploy(1, "3", name="full")
    (web,) = await stage.deploy(1, "3")
    await stage.cordon(node_of(web))
    job = await stage.file(web, ttl="1h")
    await stage.has_condition(job, "ReservationScheduled", "False", "Unschedulable", says="Insufficient cpu")
    await stage.is_untouched(web)
    # A third node comes, and with it the room.
    (third,) = await stage.nodes(4)
    done = await stage.ends(job, "Succeed")
    (moved,) = await stage.ready(1)
    assert (node_of(moved), done["status"]["nodeName"]) == (third, third)
    assert done["status"]["podRef"]["uid"] == moved["metadata"]["uid"]
    # The same, as a descheduler of before would do it.
    await stage.cordon(third)
    await _evict(stage, moved)

    async def pending() -> bool:
        return [condition_of(one, "PodScheduled").get("reason") for one in await stage.pods()] == ["Unschedulable"]

    await stage.herd.eventually(pending)


async def test_story_2_a_job_waits_for_a_rollout_and_gives_way_to_one_that_begins(stage: Stage) -> None:
    await stage.nodes(4, 4)
    (old,) = await stage.deploy(1, "3", workload={"progressDeadlineSeconds": 600})
    # No node has so much: the rollout does not get anywhere.
    await stage.change("1", containers=[{"name": "main", "resources": {"requests": {"cpu": "5"}}}])
    waiting = await stage.file(old)
    await stage.shows(waiting, "Pending", "RolloutInProgress")
    await stage.no_reservation_of(waiting)
    await stage.is_untouched(old)
    # It comes through, and with it goes the pod: nothing is left to be moved.
    await stage.change("2", containers=[{"name": "main", "resources": {"requests": {"cpu": "3"}}}])
    await stage.ends(waiting, "Failed", "MissingPod")
    (new,) = await stage.ready(1)
    # A rollout that begins while a job has its room, and has not evicted yet.
    blocked = await stage.pod("blocker", "3")
    await stage.herd.eventually(lambda: _has_node(stage, blocked))
    held = await stage.file(new, ttl="1h")
    await stage.has_condition(held, "ReservationScheduled", "False", "Unschedulable")
    await stage.change("3", containers=[{"name": "main", "resources": {"requests": {"cpu": "5"}}}])
    await stage.herd.delete("blocker", PODS)
    await stage.shows(held, "Pending", "RolloutInProgress")
    await stage.no_reservation_of(held)
    await stage.is_untouched(new)


async def _has_node(stage: Stage, pod: Json) -> bool:
    return bool((await stage.api.get(PODS, pod["metadata"]["name"], stage.namespace)).ok["spec"].get("nodeName"))


async def test_story_2_scaled_down_before_the_eviction_there_is_nothing_left_to_move(stage: Stage) -> None:
    await stage.nodes(4)
    (web,) = await stage.deploy(1, "3")
    job = await stage.file(web, ttl="1h")
    await stage.has_condition(job, "ReservationScheduled", "False", "Unschedulable")
    await stage.scale(0)
    await stage.ends(job, "Failed", "MissingPod")
    await stage.no_reservation_of(job)


async def test_story_2_scaled_down_after_the_eviction_no_replacement_is_due_and_the_room_is_free(stage: Stage) -> None:
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "3", readinessGates=GATED)
    await stage.let_in(web)
    await stage.ready(1)
    job = await stage.file(web, ttl="1h")
    replacement = await stage.replacement_of(web)
    await stage.has_condition(job, "PodBoundReservation", "True")
    assert (await stage.job(job))["status"]["podRef"]["uid"] == replacement["metadata"]["uid"]
    await stage.scale(0)
    await stage.ends(job, "Failed", "NoReplacement")
    held = await stage.reservation_of(job)
    assert held is None or held["status"]["phase"] in ("Succeeded", "Failed"), held
    # Somebody else has the whole of that node.
    everything = await stage.pod("everything", "4")
    await stage.herd.eventually(lambda: _has_node(stage, everything))


async def test_story_2_an_upgrade_after_the_eviction_ends_the_job_and_not_the_upgrade(stage: Stage) -> None:
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "1", readinessGates=GATED)
    await stage.let_in(web)
    await stage.ready(1)
    job = await stage.file(web, ttl="1h")
    replacement = await stage.replacement_of(web)
    await stage.change("1")
    upgraded = await stage.replacement_of(web, replacement)
    await stage.let_in(upgraded)
    await stage.ends(job, "Failed", "NoReplacement")
    (left,) = await stage.ready(1)
    assert left["metadata"]["uid"] == upgraded["metadata"]["uid"]


async def test_story_3_any_program_files_jobs_and_follows_them(
    api: Api, engine: Engine, stage: Stage, unique: Callable[..., str]
) -> None:
    """With the rights of the role that is made for it, and no others."""
    await stage.nodes(4, 4)
    (web,) = await stage.deploy(1, "3")
    name = unique("program")
    (role,) = [one for one in roles() if one["metadata"]["name"] == "pod-migrator"]
    await grant(api, "", user(name), *role["rules"])
    async with with_certificate(engine, name) as program:
        job = await stage.file(web, by=program)
        phases: list[str] = []
        async with program.watch(JOBS, fieldSelector=f"metadata.name={job}") as watch:
            while "Succeed" not in phases:
                phases.append((await watch.next(PATIENCE)).object.get("status", {}).get("phase", ""))
        assert "Failed" not in phases
        status = (await program.get(JOBS, job)).ok["status"]
        assert (await program.get(NODES, status["nodeName"])).code == 403, "which nodes there are is not for programs to see"
    (moved,) = await stage.ready(1)
    assert (status["nodeName"], status["podRef"]["name"]) == (node_of(moved), moved["metadata"]["name"])
    assert node_of(moved) != node_of(web)
    told = [one["type"] for one in status["conditions"] if one["status"] == "True"]
    assert told == [
        *("ReservationCreated", "ReservationScheduled", "Eviction"),
        *("PodScheduled", "PodBoundReservation", "ReservationBound"),
    ]
    assert web["metadata"]["name"] in await stage.told(job, "Succeed")
