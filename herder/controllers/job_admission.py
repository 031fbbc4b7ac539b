"""New PodMigrationJobs among other objects, for the webhook: their pod, other jobs of it, what their creator may do."""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from herder.api.kinds import PodMigrationJob
from herder.api.problems import Problem, forbidden
from herder.controllers.configuration import HerderConfig
from herder.kube.access_reviews import may_evict
from herder.kube.cache import Cache, Caches
from herder.kube.cache.indexes import Index
from herder.kube.cache.stored import Stored
from herder.kube.client import Client
from herder.kube.errors import KubeError
from herder.kube.resources import JOBS, PODS, Key
from herder.kube.webhook.reviews import Question
from herder.rules.jobs.admission import POD_REF, Creator, is_unfinished, job_problems, pod_of

log = structlog.get_logger()
# Less than the API server waits for us.
PATIENCE = 3.0
# Jobs of one pod that the cache takes for unfinished: one, or two that came together.
MOST_LOOKED_AT = 10


def _found_under(stored: Stored[PodMigrationJob]) -> list[str]:
    return [pod_of(stored.view)] if is_unfinished(stored.view) else []


UNFINISHED_BY_POD: Index[PodMigrationJob] = Index("unfinished jobs by pod", _found_under)


class JobAdmission:
    """The caches are filled when the first job is written. To list all jobs for each write would cost the API server far more than
    a cache that may be a moment behind; whether a job that it takes for unfinished still is, is asked live."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client
        self._caches = caches
        self._jobs: Cache[PodMigrationJob] | None = None
        self._config: HerderConfig | None = None

    async def __call__(self, question: Question) -> list[Problem]:
        """Where the API server does not answer, the job is refused: the controllers could look again at everything but at who
        created it."""
        if question.operation != "CREATE" or (question.kind.group, question.kind.kind) != (JOBS.group, JOBS.kind):
            return []
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._problems(question)
        except (KubeError, TimeoutError) as error:
            log.warning("a job was not judged among others", name=question.name, why=str(error))
            why = "the API server did not say in time whether the pod may be evicted by who creates this job: must be tried again"
            return [forbidden(POD_REF, why)]

    async def _problems(self, question: Question) -> list[Problem]:
        job = msgspec.convert(question.object, PodMigrationJob)
        key = Key(job.spec.pod_ref.namespace, job.spec.pod_ref.name)
        creator = Creator(question.user_info.username, await may_evict(self._client, question.user_info, key))
        pod = await self._client.find(PODS, key) if creator.may_evict else None
        others = await self._unfinished(job) if pod is not None else ()
        evict_failed_bare_pods = (await self._synced())[1].jobs().evict_failed_bare_pods if pod is not None else False
        return job_problems(job, creator, pod, others, evict_failed_bare_pods)

    async def _unfinished(self, job: PodMigrationJob) -> list[PodMigrationJob]:
        jobs, _ = await self._synced()
        keys = jobs.keys_by(UNFINISHED_BY_POD, pod_of(job))[:MOST_LOOKED_AT]
        live = [await self._client.find(JOBS, key) for key in keys]
        return [other for other in live if other is not None]

    async def _synced(self) -> tuple[Cache[PodMigrationJob], HerderConfig]:
        if self._jobs is None or self._config is None:
            self._jobs, self._config = self._caches.of(JOBS), HerderConfig(self._caches)
            self._jobs.add_index(UNFINISHED_BY_POD)
        await self._jobs.wait_synced()
        await self._config.cache.wait_synced()
        return self._jobs, self._config
