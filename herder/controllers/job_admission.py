"""PodMigrationJobs among other objects, for the webhook: what who writes them may do; of new ones their pod, and its other jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import structlog

from herder.api.kinds import PodMigrationJob
from herder.api.problems import Problem
from herder.controllers.configuration import HerderConfig
from herder.kube.access_reviews import ResourceAttributes, is_allowed
from herder.kube.cache import Cache, Caches
from herder.kube.cache.indexes import Index
from herder.kube.cache.stored import Stored
from herder.kube.client import Client
from herder.kube.errors import KubeError
from herder.kube.resources import JOBS, PODS, Key
from herder.kube.webhook.reviews import Question, UserInfo
from herder.rules.jobs.admission import is_unfinished, job_problems, pod_of
from herder.rules.jobs.rights import Right, asks_anew, rights_needed

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
        wrote it."""
        if question.object is None or (question.kind.group, question.kind.kind) != (JOBS.group, JOBS.kind):
            return []
        created = question.operation == "CREATE"
        if not created and not asks_anew(question.object, question.old_object or {}):
            return []  # what it is about cannot be changed later
        job = msgspec.convert(question.object, PodMigrationJob)
        rights = rights_needed(job, created=created)
        try:
            async with asyncio.timeout(PATIENCE):
                missing = await self._missing(question.user_info, rights)
                if missing is not None:
                    return [missing.refusal(question.user_info.username)]
                return await self._problems(job) if created else []
        except (KubeError, TimeoutError) as error:
            log.warning("a job was not judged among others", name=question.name, why=str(error))
            return [rights[0].unanswered()]

    async def _missing(self, user: UserInfo, rights: Sequence[Right]) -> Right | None:
        for right in rights:
            wanted = ResourceAttributes(
                verb=right.verb,
                group=right.group,
                resource=right.resource,
                subresource=right.subresource,
                namespace=right.namespace,
                name=right.name,
            )
            if not await is_allowed(self._client, user, wanted):
                return right
        return None

    async def _problems(self, job: PodMigrationJob) -> list[Problem]:
        pod = await self._client.find(PODS, Key(job.spec.pod_ref.namespace, job.spec.pod_ref.name))
        others = await self._unfinished(job) if pod is not None else ()
        evict_failed_bare_pods = (await self._synced())[1].jobs().evict_failed_bare_pods if pod is not None else False
        return job_problems(job, pod, others, evict_failed_bare_pods)

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
