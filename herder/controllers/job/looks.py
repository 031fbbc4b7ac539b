"""One look at a job: its pod, workload, budgets and history as caches know them now, and what arbitration reads of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api.core import Deployment, Pod
from herder.api.kinds import PodMigrationJob, VirtualMachineInstance
from herder.controllers.configuration import HerderConfig
from herder.controllers.job.budgets import Budgets
from herder.controllers.job.history import History
from herder.controllers.job.webhook_guard import WebhookGuard
from herder.controllers.job.workloads import Workloads
from herder.kube.cache import Cache, Stored, view_of
from herder.kube.kit import Kit
from herder.kube.resources import INSTANCES, JOBS, PODS, Key
from herder.rules.jobs.admission import why_not_movable
from herder.rules.jobs.arbitration import Candidate, Migrating, Wait, WorkloadState
from herder.rules.jobs.arbitration.candidate import (
    candidate_pod,
    claims_budgets,
    created_at,
    goes_on,
    is_given_back,
    is_machine,
    is_surged,
    meant_uid,
    migrating,
    migration_priority,
    why_another_has_it,
    why_not_its_guest,
)
from herder.rules.jobs.arbitration.snapshot import NO_BUDGETS
from herder.rules.jobs.budgets import PodBudgets, needs_no_budget
from herder.rules.jobs.execution.status import phase_of
from herder.rules.jobs.execution.surge import needs_no_budget_yet, surges, why_no_surge
from herder.rules.jobs.workload import DEPLOYMENT, Workload


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A look at a job that waits, and what it was made of."""

    job: Stored[PodMigrationJob]
    candidate: Candidate
    pod: Stored[Pod] | None = None
    workload: Workload | None = None
    state: WorkloadState | None = None
    budgets: PodBudgets = NO_BUDGETS
    # Whether the pod's replacement comes before it goes; or why it does not, where that is asked for.
    surges: bool = False
    why_no_surge: str = ""

    @property
    def is_left_alone(self) -> bool:
        """The pod is gone as far as the cache knows, or is being given back to its controller: the job's controller sees to it."""
        return self.pod is None


class Looks:
    def __init__(
        self,
        kit: Kit,
        workloads: Workloads,
        budgets: Budgets,
        config: HerderConfig,
        guard: WebhookGuard,
        history: History,
        unfinished: Mapping[Key, Mapping[str, None]],
    ) -> None:
        """`unfinished`: jobs that are not over, by their pod."""
        self._workloads, self._budgets, self._config, self._guard = workloads, budgets, config, guard
        self._history, self._unfinished = history, unfinished
        self._jobs: Cache[PodMigrationJob] = kit.caches.of(JOBS)
        self._pods: Cache[Pod] = kit.caches.of(PODS)
        self._instances: Cache[VirtualMachineInstance] = kit.caches.of(INSTANCES)

    def look(self, stored: Stored[PodMigrationJob], job: PodMigrationJob) -> Looked:
        """At a job of which its pod, its workload and its budgets are as the caches know them now."""
        pod = self.pod_of(job)
        view = view_of(pod)
        unjudged, forbidden = self._judged(job)
        if view is not None and is_given_back(job, view):
            pod = view = None
        if pod is None or view is None:
            return Looked(job=stored, candidate=self._candidate(job, unjudged, forbidden), pod=pod)
        instance = self._instance_of(pod)
        machine = is_machine(view, instance)
        workload = self._workloads.of(pod)
        deployment = self._deployment_of(workload)
        config = self._config.jobs()
        free = (
            machine or needs_no_budget(view.status.phase, view.being_deleted) or needs_no_budget_yet(job, view, deployment, config)
        )
        # One that the job itself has taken from its controller has none.
        bare = "" if is_surged(job, view) else why_not_movable(view, config.evict_failed_bare_pods)
        candidate = Candidate(
            name=job.name,
            created=created_at(job),
            pod=candidate_pod(view, workload.id if workload is not None else None, machine=machine),
            paused=bool(job.spec.paused),
            unjudged=unjudged,
            forbidden=forbidden or bare or why_not_its_guest(view, instance),
            migration_priority=migration_priority(job),
            failures=self._history.failures(view.uid),
            deschedulings=self._history.deschedulings(workload.id if workload is not None else None),
        )
        return Looked(
            job=stored,
            candidate=candidate,
            pod=pod,
            workload=workload,
            state=WorkloadState(workload, self._workloads.replicas(workload)) if workload is not None else None,
            budgets=NO_BUDGETS if free else self._budgets.of(pod, workload),
            surges=surges(job, view, deployment),
            why_no_surge=why_no_surge(job, view, deployment),
        )

    def _candidate(self, job: PodMigrationJob, unjudged: str, forbidden: str) -> Candidate:
        paused = bool(job.spec.paused)
        return Candidate(name=job.name, created=created_at(job), pod=None, paused=paused, unjudged=unjudged, forbidden=forbidden)

    def _judged(self, job: PodMigrationJob) -> tuple[str, str]:
        """Why it is not known whether its creator may have the pod moved, and why the job may not. One that runs has passed."""
        unjudged = self._guard.why_not(job) if phase_of(job) == "Pending" else None
        if isinstance(unjudged, Wait):
            return unjudged.message, ""
        return "", unjudged.message if unjudged is not None else self._why_another(job)

    def pod_of(self, job: PodMigrationJob) -> Stored[Pod] | None:
        """That very one."""
        pod = self._pods.stored(Key(job.spec.pod_ref.namespace, job.spec.pod_ref.name))
        uid = meant_uid(job)
        return pod if pod is not None and uid in ("", pod.uid) else None

    def _instance_of(self, pod: Stored[Pod]) -> VirtualMachineInstance | None:
        owner = pod.controller
        return view_of(self._instances.stored(Key(pod.key.namespace, owner.name))) if owner is not None else None

    def _deployment_of(self, workload: Workload | None) -> Deployment | None:
        if workload is None or workload.group_kind != DEPLOYMENT:
            return None
        found = self._workloads.get(DEPLOYMENT, workload.namespace, workload.name)
        return found if isinstance(found, Deployment) and found.uid == workload.uid else None

    def _why_another(self, job: PodMigrationJob) -> str:
        names = self._unfinished.get(pod_key(job), {})
        if len(names) < 2:
            return ""
        found = (view_of(self._jobs.stored(Key("", name))) for name in names)
        first = goes_on([one for one in found if one is not None])
        return why_another_has_it(job, first) if first is not None and first.name != job.name else ""

    def as_migrating(self, job: PodMigrationJob) -> tuple[Migrating, PodBudgets]:
        """A job that runs, with the budgets of its pod."""
        pod = self.pod_of(job)
        budgets = NO_BUDGETS
        view = view_of(pod)
        if pod is not None and view is not None and claims_budgets(job, view, self._config.jobs()):
            budgets = self._budgets.of(pod, self._workloads.of(pod))
        return migrating(job, view), budgets


def pod_key(job: PodMigrationJob) -> Key:
    return Key(job.spec.pod_ref.namespace, job.spec.pod_ref.name)
