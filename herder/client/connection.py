"""A connection to a cluster, and the calls that another program needs to have pods moved.

Everything that may go wrong between the program and the cluster is a `KubeError`; what the API server refuses is an
`ApiStatusError`, whose text names the field, the value and what would be right.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from herder.api import labels
from herder.api.kinds import PodMigrationJob
from herder.client.job import Job, Mode, Phase, job_of
from herder.kube.client import Client, Selection
from herder.kube.connect import connection
from herder.kube.errors import Expired, KubeError, NotFound, ServerFailed, TooManyRequests, Unreachable
from herder.kube.resources import JOBS, Key

AGENT = "herder-client"
# How long an API server may be away while a job is followed: one that is restarted is back by then.
PATIENCE = 60.0
LOOK_AGAIN = 0.5
# What a server that is restarted, or has much to do, answers.
PASSING = (Unreachable, ServerFailed, TooManyRequests)
LONGEST_PREFIX = 57


class JobGone(Exception):
    """The job was deleted before it was over, which aborts it. `last` is how it was seen last."""

    def __init__(self, last: Job) -> None:
        super().__init__(f"PodMigrationJob {last.name} was deleted while it was {last.phase}")
        self.last = last


@asynccontextmanager
async def connect(
    kubeconfig: Path | str | None = None, context: str | None = None, *, agent: str = AGENT
) -> AsyncGenerator[Herder]:
    """Finds the cluster as kubectl does: the file that is named, $KUBECONFIG, ~/.kube/config; inside a pod, its own account.

    `agent` is the name under which the program stands in logs and in managedFields. Raises `Misconfigured` where no cluster, or no
    usable credential, is found. Nothing is asked of the API server before the first call.
    """
    found = connection(Path(kubeconfig) if kubeconfig is not None else None, context, agent)
    async with Client(found.transport, agent) as client:
        yield Herder(client)


class Herder:
    """Made by `connect`. What it may do is what its account may: the role `pod-migrator` is enough."""

    def __init__(self, client: Client) -> None:
        # For reading other kinds (nodes, pods) through typed views: `await herder.kube.list(PODS)`.
        self.kube = client

    # One job.

    async def file_job(
        self,
        namespace: str,
        pod: str,
        *,
        uid: str | None = None,
        name: str | None = None,
        mode: Mode | None = None,
        ttl: str | None = None,
        priority: int | None = None,
        surge: bool = False,
        paused: bool = False,
        annotations: Mapping[str, str] | None = None,
    ) -> Job:
        """Asks for a pod to be moved. Whether and when that happens the cluster decides: follow the job.

        uid          of the pod that is meant; without, whichever has the name. A program that chose a pod says which.
        name         of the job; without, one that begins with `migrate-` and the pod's name.
        mode, ttl    as in the job's spec, for example "EvictDirectly" and "10m"; without, what the cluster has configured.
        priority     among jobs that wait: the higher, the sooner; 0 without.
        surge        whether the replacement is to be ready before the pod goes, where its Deployment can do that.
        paused       whether it waits for `resume`.

        Raises `Invalid` or `Forbidden` where the pod is not there, cannot be moved, or is moved by another job already, or where
        this account may not evict it.
        """
        reference = {"namespace": namespace, "name": pod, **({"uid": uid} if uid else {})}
        wanted: dict[str, Any] = {"mode": mode, "ttl": ttl, "paused": paused or None}
        notes = {
            **(annotations or {}),
            **({labels.MIGRATION_PRIORITY: str(priority)} if priority is not None else {}),
            **({labels.SURGE: "true"} if surge else {}),
        }
        named = {"name": name} if name else {"generateName": f"{f'migrate-{pod}'[:LONGEST_PREFIX].rstrip('-.')}-"}
        document = {
            "metadata": {**named, **({"annotations": notes} if notes else {})},
            "spec": {"podRef": reference, **{field: value for field, value in wanted.items() if value is not None}},
        }
        return job_of(await self.kube.create(JOBS, document))

    async def job(self, name: str) -> Job:
        """As it is now. Raises `NotFound`."""
        return job_of(await self.kube.get(JOBS, Key("", name)))

    async def pause(self, name: str) -> Job:
        """Holds a job that waits, and sends one back that has not evicted its pod yet; then it has no effect any more."""
        return await self._patch(name, {"spec": {"paused": True}})

    async def resume(self, name: str) -> Job:
        return await self._patch(name, {"spec": {"paused": False}})

    async def abort(self, name: str) -> Job:
        """Ends a job. Before its pod was evicted all is as if it had never run; afterwards the replacement keeps its room. One that
        is over is left as it is."""
        now = await self.job(name)
        wish = {"metadata": {"uid": now.uid, "annotations": {labels.ABORT: "true"}}}
        return now if now.finished else await self._patch(name, wish)

    async def _patch(self, name: str, patch: dict[str, Any]) -> Job:
        return job_of(await self.kube.patch(JOBS, Key("", name), patch))

    # Following.

    async def follow(self, name: str, *, patience: float = PATIENCE) -> AsyncGenerator[Job]:
        """The job as it is, and then each time that something has changed, until it is over.

        An API server that does not answer is asked again for `patience` seconds. Raises `NotFound` where there is no such job, and
        `JobGone` where it is deleted before it is over. Close the generator (`contextlib.aclosing`) where it is left early.
        """
        last: Job | None = None
        async with aclosing(self._states(name, patience)) as states:
            async for job in states:
                if job is None or (last is not None and job.uid != last.uid):
                    assert last is not None, "one that was never seen is NotFound"
                    raise JobGone(last)
                if job != last:
                    last = job
                    yield job
                if job.finished:
                    return

    async def wait(self, name: str, *, timeout: float | None = None) -> Job:
        """Until it is over, however that ends: look at `succeeded`. After `timeout` seconds TimeoutError; the job goes on."""
        async with asyncio.timeout(timeout), aclosing(self.follow(name)) as states:
            async for job in states:
                if job.finished:
                    return job
        raise AssertionError("a job is followed until it is over")

    async def _states(self, name: str, patience: float) -> AsyncGenerator[Job | None]:
        """All states that are seen, over as many watches as it takes. None: it is gone."""
        clock = asyncio.get_running_loop().time
        answered, seen = clock(), False
        while True:
            try:
                job = await self.kube.get(JOBS, Key("", name))
                answered, seen = clock(), True
                yield job_of(job)
                async with aclosing(self._changes(name, job)) as changes:
                    async for change in changes:
                        answered = clock()
                        yield change
            except NotFound:
                if not seen:
                    raise
                yield None
            except Expired:
                pass
            except PASSING as error:
                _give_up_after(patience, clock() - answered, error)
            await asyncio.sleep(LOOK_AGAIN)

    async def _changes(self, name: str, job: PodMigrationJob) -> AsyncGenerator[Job | None]:
        """Until the watch ends."""
        only = Selection(fields=f"metadata.name={name}")
        async with aclosing(self.kube.watch(JOBS, job.metadata.resource_version or "", only)) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                # The last state of one that is deleted may say how it ended.
                seen = job_of(JOBS.decode(event.object))
                if event.type != "DELETED" or seen.finished:
                    yield seen
                if event.type == "DELETED":
                    yield None

    # Several.

    async def jobs(self, *, namespace: str | None = None, pod: str | None = None, phase: Phase | None = None) -> list[Job]:
        """All, oldest first; or those of pods of a namespace, of a pod, or in a phase."""
        found = [job_of(one) for one in (await self.kube.list(JOBS)).items]
        meant = [
            job
            for job in found
            if (namespace is None or job.namespace == namespace)
            and (pod is None or job.pod == pod)
            and (phase is None or job.phase == phase)
        ]
        return sorted(meant, key=lambda job: (job.created.timestamp() if job.created is not None else 0.0, job.name))


def _give_up_after(patience: float, silent: float, error: KubeError) -> None:
    if silent > patience:
        raise error
