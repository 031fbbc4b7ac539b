"""PodMigrationJobs among other objects: what who writes them may do; of new ones their pod, other jobs of it, and the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from herder.api.account import SYSTEM_NAMESPACE
from herder.api.core import ConfigMap, Pod
from herder.api.kinds import PodMigrationJob
from herder.api.problems import Problem
from herder.rules.herder_config import BUILT_IN, JobsConfiguration, next_in_use
from herder.rules.herder_config import JOBS as JOBS_FILE
from herder.rules.herder_config import NAME as HERDER_CONFIG
from herder.rules.jobs.admission import is_unfinished, job_problems, pod_of
from herder.rules.jobs.rights import Right, asks_anew, rights_needed
from herder.server.access.attributes import Attributes
from herder.server.others import JOBS, read_record, readable
from herder.server.request import User
from herder.server.store import DELETED, Change, Store
from herder.server.store.records import key_of

PODS, CONFIG_MAPS = "pods", "configmaps"
Allows = Callable[[User, Attributes], bool]


class JobAdmission:
    """Follows what it has to know by changes that are durable, and looks at those on their way: of two jobs of one pod that come
    together one is let in."""

    def __init__(self, store: Store, allows: Allows) -> None:
        self._store = store
        self._allows = allows
        # Keys of unfinished jobs by their pod: there is one of each, but for those stored before there was this rule.
        self._unfinished: dict[str, set[str]] = {}
        self._config = BUILT_IN
        self._config_key = key_of(SYSTEM_NAMESPACE, HERDER_CONFIG)
        for record in store.scan(JOBS):
            self._on_job(Change(JOBS, "", record, None))
        store.listen(JOBS, self._on_job)
        if (record := store.get(CONFIG_MAPS, self._config_key)) is not None:
            self._on_config(Change(CONFIG_MAPS, "", record, None))
        store.listen(CONFIG_MAPS, self._on_config)

    def problems(self, document: dict[str, Any], old: dict[str, Any] | None, user: User) -> list[Problem]:
        if old is not None and not asks_anew(document, old):
            return []  # what it is about cannot be changed later
        job = msgspec.convert(document, PodMigrationJob)
        rights = rights_needed(job, created=old is None)
        missing = next((right for right in rights if not self._has(user, right)), None)
        if missing is not None:
            return [missing.refusal(user.name)]
        return self._of_new(job) if old is None else []

    def _has(self, user: User, right: Right) -> bool:
        what = Attributes(right.verb, "", right.group, right.resource, right.subresource, right.namespace, right.name)
        return self._allows(user, what)

    def _of_new(self, job: PodMigrationJob) -> list[Problem]:
        record = self._store.latest(PODS, key_of(job.spec.pod_ref.namespace, job.spec.pod_ref.name))
        pod = read_record(record, Pod) if record is not None else None
        return job_problems(job, pod, self._others(job), self._evict_failed_bare_pods())

    def _others(self, job: PodMigrationJob) -> Iterator[PodMigrationJob]:
        """Read only where everything else is right."""
        known = (self._store.latest(JOBS, key) for key in self._unfinished.get(pod_of(job), ()))
        yield from readable((*known, *self._store.on_their_way(JOBS)), PodMigrationJob)

    def _evict_failed_bare_pods(self) -> bool:
        jobs = self._config.values[JOBS_FILE]
        return isinstance(jobs, JobsConfiguration) and jobs.evict_failed_bare_pods

    def _on_job(self, change: Change) -> None:
        job = read_record(change.record, PodMigrationJob)
        if job is None:
            return
        # The pod of a job never changes, and a finished job stays finished.
        keys = self._unfinished.setdefault(pod_of(job), set())
        if change.kind == DELETED or not is_unfinished(job):
            keys.discard(change.record.key)
        else:
            keys.add(change.record.key)
        if not keys:
            del self._unfinished[pod_of(job)]

    def _on_config(self, change: Change) -> None:
        """As the controllers read it: one that is wrong leaves the last good one in use."""
        if change.record.key != self._config_key:
            return
        config_map = read_record(change.record, ConfigMap)
        if change.kind == DELETED:
            self._config = BUILT_IN
        elif config_map is not None:
            self._config = next_in_use(self._config, config_map)
