"""How many may move at once, and who waits for whom, without any setting (seed 004). What jobs.yaml says the simulations try."""

from __future__ import annotations

import asyncio

from tests.engines.api import Json
from tests.jobs.stage import GATE, Stage, is_ready

GATED = [{"conditionType": GATE}]


async def _gated(stage: Stage, replicas: int, cpu: str = "1") -> list[Json]:
    pods = await stage.deploy(replicas, cpu, readinessGates=GATED)
    for pod in pods:
        await stage.let_in(pod)
    return await stage.ready(replicas)


async def test_of_three_replicas_one_moves_at_a_time(stage: Stage) -> None:
    """By the seed's formula; the next one begins when the replacement is ready."""
    await stage.nodes(4, 4)
    pods = await _gated(stage, 3)
    jobs = await asyncio.gather(*(stage.file(pod, ttl="1h") for pod in pods))
    moved: list[str] = []
    known = list(pods)
    for _ in pods:
        replacement = await stage.replacement_of(*known)
        statuses = {job: (await stage.job(job))["status"] for job in jobs}
        running = [job for job, status in statuses.items() if status.get("phase") == "Running"]
        assert len(running) == 1, statuses
        waiting = [status.get("reason") for status in statuses.values() if status.get("phase") == "Pending"]
        assert set(waiting) <= {"WaitingForWorkloadLimit"}, statuses
        moved += running
        known.append(replacement)
        await stage.let_in(replacement)
        await stage.ends(running[0], "Succeed")
    assert sorted(moved) == sorted(jobs)
    left = {one["metadata"]["uid"] for one in await stage.ready(3)}
    assert left.isdisjoint({one["metadata"]["uid"] for one in pods})


async def test_a_replica_that_is_missing_already_counts(stage: Stage) -> None:
    await stage.nodes(4, 4)
    pods = await _gated(stage, 2)
    await stage.let_in(pods[1], ready=False)
    await stage.herd.eventually(lambda: _one_is_ready(stage))
    job = await stage.file(pods[0], ttl="1h")
    await stage.shows(job, "Pending", "WaitingForWorkloadLimit")
    await stage.no_reservation_of(job)
    await stage.let_in(pods[1])
    await stage.replacement_of(*pods)


async def _one_is_ready(stage: Stage) -> bool:
    return [is_ready(one) for one in await stage.pods()].count(True) == 1


async def test_a_node_loses_two_pods_at_a_time(stage: Stage) -> None:
    """Of three workloads, all on one node; and each leaves when there is room elsewhere."""
    await stage.nodes(4)
    pods = [(await stage.deploy(1, "1", name=name))[0] for name in ("a", "b", "c")]
    jobs = [await stage.file(pod, ttl="1h") for pod in pods]

    async def held() -> bool:
        statuses = [(await stage.job(job)).get("status", {}) for job in jobs]
        assert sorted(status.get("phase", "") for status in statuses) == ["Pending", "Running", "Running"], statuses
        (waiting,) = [status for status in statuses if status["phase"] == "Pending"]
        assert waiting["reason"] == "WaitingForNodeLimit", waiting
        return True

    await stage.herd.eventually(held)
    await stage.nodes(4)
    for job in jobs:
        await stage.ends(job, "Succeed")
