"""Traps of jobs that take long, or that only chance would lay elsewhere: in a cluster of its own, under virtual time.

The traps of seed 004, by name, and where each is (test_reservation_first.py: in tests/unit/rules/jobs/execution):
scale-up pod between reserve and evict                      tests/jobs/test_room.py, test_reservation_first.py
two jobs of one ReplicaSet, replacements crossed            here, test_job_replacements.py
bind answered 500 but done, then leader change              unit/scheduler/test_reservations.py, test_jobs.py
bound pod seen before, or after, the reservation's status   test_reservation_first.py, unit/rules/reservations/test_ledger.py
scheduler restart between bind and status                   test_jobs.py (CrashAfter)
reservation deleted while a bind is under way               unit/scheduler/test_reservations.py, tests/jobs/test_room.py
node deleted, cordoned, tainted before the eviction         tests/jobs/test_room.py, unit/scheduler/test_reservations.py
replacement prefers the emptied old node                    tests/jobs/test_room.py
spread, anti-affinity only without the old pod              test_job_replacements.py, unit/scheduler/test_reservations.py
ReadWriteOncePod, local, late-binding, ephemeral volumes    test_job_volumes.py, unit/rules/reservations
StatefulSet pod recreated under its name before eviction    tests/jobs/test_eviction.py, test_job_interruptions.py (409)
grace period longer than TTL                                tests/jobs/test_eviction.py
rollout or scale-to-zero after eviction                     tests/jobs/test_stories.py
old ReplicaSet's pod mid-rollout                            tests/jobs/test_stories.py, unit/rules/jobs (workloads, rollout)
two PDBs on one pod; policy Delete passes no budget         tests/jobs/test_eviction.py
PDB status stale, percentages, AlwaysAllow                  unit/rules/jobs (budgets), test_job_interruptions.py
maxMigratingPerNode 1; a limit lowered below what runs      test_job_settings.py
leader change must not refill the bucket                    test_job_settings.py
abort/delete before, during, after; controller away         tests/jobs (control, eviction), test_job_interruptions.py, here
pause/resume around each step, clock set back               tests/jobs/test_control.py, test_job_interruptions.py, test_jobs.py
two jobs for one pod, made together                         unit/server/test_job_admission.py, unit/controllers/test_arbitrator.py
VM job while something else moves its guest                 tests/machines
namespace or workload deleted mid-job                       test_job_interruptions.py, here
given reservation expires during eviction backoff           test_reservation_first.py
replacement smaller or larger than the reservation          test_job_replacements.py, test_reservation_first.py
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from herder.api.kinds import PodMigrationJob
from herder.api.labels import ABORT
from herder.kube.client import STRATEGIC_PATCH
from herder.kube.resources import DEPLOYMENTS, JOBS, PODS, RESERVATIONS, Key
from herder.kube.transport import Reply
from tests.simulation.cluster import CONTROLLERS
from tests.simulation.jobs.cluster import Cluster, in_cluster
from tests.simulation.wire import Go, Sent

Json = dict[str, Any]


async def _reserve(cluster: Cluster, name: str, app: str, **spec: Any) -> None:
    """Room that no node has."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"namespace": "default"}, "spec": {"containers": [container], "nodeSelector": {"no": "where"}}}
    owners = [{"labelSelector": {"matchLabels": {"app": app}}}]
    await cluster.client.create(
        RESERVATIONS, {"metadata": {"name": name}, "spec": {"template": template, "owners": owners, **spec}}
    )


async def _touch(cluster: Cluster, name: str, times: int) -> None:
    for number in range(times):
        await cluster.client.patch(RESERVATIONS, Key("", name), {"metadata": {"annotations": {"touched": str(number)}}})


def test_of_two_jobs_that_name_one_reservation_the_first_keeps_it() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.settings("maxConcurrentReconciles: 10\nmaxMigratingPerNode: 10")
        pods = await cluster.deploy("web", 8)
        await _reserve(cluster, "room", "web")
        named: Json = {"reservationOptions": {"reservationRef": {"name": "room"}}}
        await cluster.file("a", pods[0], **named)
        await asyncio.sleep(5)
        # Each change of it has the first job looked at again, also while the second is just admitted.
        for name, pod in zip("bcdefgh", pods[1:], strict=True):
            await asyncio.gather(cluster.file(name, pod, **named), _touch(cluster, "room", 30))
        await asyncio.sleep(20)
        refused = dict.fromkeys("bcdefgh", ("Failed", "ForbiddenMigratePod"))
        assert await cluster.statuses() == {"a": ("Running", "Unschedulable"), **refused}
        (b,) = [job for job in (await cluster.client.list(JOBS)).items if job.name == "b"]
        assert b.status is not None and "is what PodMigrationJob a uses" in (b.status.message or "")

    in_cluster(story)


def test_a_refused_eviction_is_tried_again_and_takes_nothing_away_from_what_was_reached() -> None:
    """Also where no budget that we know of has refused it: a server that is busy says the same."""

    async def story(cluster: Cluster) -> None:
        (pod,) = await cluster.deploy("web", 1)
        refused: list[str] = []

        async def refuse(sent: Sent, go: Go) -> Reply:
            if not sent.call.path.endswith("/eviction") or len(refused) == 3:
                return await go()
            refused.append(sent.call.path)
            return _busy()

        cluster.simulation.wire(CONTROLLERS).around.append(refuse)
        await cluster.file("a", pod)
        await asyncio.sleep(2)
        (job,) = (await cluster.client.list(JOBS)).items
        assert _conditions(job) == {"ReservationCreated": "True", "ReservationScheduled": "True", "Eviction": "False"}
        await asyncio.sleep(30)
        (job,) = (await cluster.client.list(JOBS)).items
        assert set(_conditions(job).values()) == {"True"}
        assert (await cluster.statuses(), len(refused)) == ({"a": ("Succeed", "")}, 3)

    in_cluster(story)


def _busy() -> Reply:
    status = {"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "message": "busy", "code": 429}
    return Reply(429, msgspec.json.encode({**status, "apiVersion": "v1", "metadata": {}, "details": {"retryAfterSeconds": 1}}))


def test_a_status_that_could_not_be_written_is_no_refused_eviction() -> None:
    """It is written right before the pod is evicted: what that was answered says nothing about the pod."""

    async def story(cluster: Cluster) -> None:
        (pod,) = await cluster.deploy("web", 1)
        refused: list[str] = []

        async def refuse(sent: Sent, go: Go) -> Reply:
            if b"Evicting" not in (sent.call.body or b"") or not sent.call.path.endswith("/a/status") or refused:
                return await go()
            refused.append(sent.call.path)
            return _busy()

        cluster.simulation.wire(CONTROLLERS).around.append(refuse)
        await cluster.file("a", pod)
        await asyncio.sleep(30)
        (job,) = (await cluster.client.list(JOBS)).items
        reached = {
            "ReservationCreated",
            "ReservationScheduled",
            "Eviction",
            "PodScheduled",
            "PodBoundReservation",
            "ReservationBound",
        }
        assert (len(refused), _conditions(job)) == (1, dict.fromkeys(reached, "True"))

    in_cluster(story)


def _conditions(job: PodMigrationJob) -> dict[str, str]:
    return {one.type: one.status for one in (job.status.conditions if job.status is not None else None) or ()}


def test_two_jobs_of_one_replica_set_end_whichever_replacement_takes_which_room() -> None:
    async def story(cluster: Cluster) -> None:
        pods = await cluster.deploy("web", 4)
        before = await cluster.pods()
        await asyncio.gather(*(cluster.file(name, pod) for name, pod in zip("ab", pods[:2], strict=True)))
        await asyncio.sleep(30)
        assert await cluster.statuses() == {"a": ("Succeed", ""), "b": ("Succeed", "")}
        jobs = [job.status for job in (await cluster.client.list(JOBS)).items]
        took = {status.pod_ref.uid for status in jobs if status is not None and status.pod_ref is not None}
        assert len(took) == 2 and took == await cluster.pods() - before

    in_cluster(story)


@pytest.mark.parametrize("evicted", [False, True], ids=["before the eviction", "after it"])
def test_a_workload_that_is_deleted_takes_its_job_along(evicted: bool) -> None:
    """Its replacement waits for a gate, so that the job is not over yet."""

    async def story(cluster: Cluster) -> None:
        (pod,) = await cluster.deploy("web", 1, readinessGates=[{"conditionType": "example.com/let-in"}])
        condition = {"type": "example.com/let-in", "status": "True"}
        patch = {"status": {"conditions": [condition]}}
        await cluster.client.patch(PODS, Key("default", pod), patch, subresource="status", content_type=STRATEGIC_PATCH)
        await asyncio.sleep(5)
        await cluster.file("a", pod)
        await asyncio.sleep(10)
        phase, _ = (await cluster.statuses())["a"]
        assert phase == "Running"
        await cluster.client.delete(DEPLOYMENTS, Key("default", "web"), propagation="Background")
        await asyncio.sleep(120)
        assert await cluster.statuses() == {"a": ("Failed", "NoReplacement" if evicted else "MissingPod")}
        held = [one for one in (await cluster.client.list(RESERVATIONS)).items if one.status.phase not in ("Succeeded", "Failed")]
        assert held == []
        assert all(not job.metadata.finalizers for job in (await cluster.client.list(JOBS)).items)

    in_cluster(story, nodes=2 if evicted else 1)


def test_given_up_while_nobody_is_there_to_carry_it_out() -> None:
    """Deleted and aborted while the controllers are away, before the eviction; after it: test_job_interruptions.py."""

    async def story(cluster: Cluster) -> None:
        pods = [(await cluster.deploy(name, 1))[0] for name in ("b", "c")]
        for name, pod in zip("bc", pods, strict=True):
            await cluster.file(name, pod)
        await asyncio.sleep(10)
        assert set((await cluster.statuses()).values()) == {("Running", "Unschedulable")}
        before = await cluster.pods()
        away = cluster.simulation.machines[f"{CONTROLLERS}-a"]
        away.crash("killed", 60.0)
        await cluster.client.delete(JOBS, Key("", "b"))
        await cluster.client.patch(JOBS, Key("", "c"), {"metadata": {"annotations": {ABORT: "true"}}})
        await asyncio.sleep(180)
        assert await cluster.statuses() == {"c": ("Aborted", "Aborted")}
        assert (await cluster.client.list(RESERVATIONS)).items == []
        assert await cluster.pods() == before

    in_cluster(story, nodes=1)
