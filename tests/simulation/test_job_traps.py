"""Traps of jobs that take long, or that only chance would lay elsewhere: in a cluster of its own, under virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from herder.api.kinds import PodMigrationJob
from herder.kube.resources import JOBS, RESERVATIONS, Key
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
        named = {"reservationOptions": {"reservationRef": {"name": "room"}}}
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
            told = {"retryAfterSeconds": 1}
            status = {"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "message": "busy", "code": 429}
            return Reply(429, msgspec.json.encode({**status, "apiVersion": "v1", "metadata": {}, "details": told}))

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


def _conditions(job: PodMigrationJob) -> dict[str, str]:
    return {one.type: one.status for one in (job.status.conditions if job.status is not None else None) or ()}
