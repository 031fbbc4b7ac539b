"""What arbitration looks at, kept ready from caches: each job is looked at again only when it, its pod, its workload, its budgets
or its history have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

import msgspec

from herder.api.core import Deployment, Pod
from herder.api.kinds import PodMigrationJob, VirtualMachineInstance
from herder.controllers.configuration import HerderConfig
from herder.controllers.job.budgets import BudgetKey, Budgets
from herder.controllers.job.history import History
from herder.controllers.job.webhook_guard import WebhookGuard
from herder.controllers.job.workloads import Workloads
from herder.kube.cache import Cache, Change, Stored, view_of
from herder.kube.kit import Kit
from herder.kube.resources import INSTANCES, JOBS, PODS, Key
from herder.rules.herder_config import JOBS as JOBS_FILE
from herder.rules.jobs.admission import why_not_movable
from herder.rules.jobs.arbitration import Candidate, Migrating, Wait, WorkloadState
from herder.rules.jobs.arbitration.candidate import (
    candidate_pod,
    claims_budgets,
    created_at,
    goes_on,
    is_aborted,
    is_given_back,
    is_machine,
    is_surged,
    meant_uid,
    migrating,
    migration_priority,
    why_another_has_it,
    why_not_its_guest,
)
from herder.rules.jobs.arbitration.snapshot import NO_BUDGETS, WorkloadId
from herder.rules.jobs.arbitration.standing import Standing
from herder.rules.jobs.budgets import PodBudgets, needs_no_budget
from herder.rules.jobs.execution.status import is_over, phase_of
from herder.rules.jobs.execution.surge import needs_no_budget_yet, surges, why_no_surge
from herder.rules.jobs.workload import DEPLOYMENT, KNOWN, WITHOUT_SCALE, Workload

# What jobs depend on. Of namespaces: where budgets are not known.
Place = (
    tuple[Literal["uid"], str]
    | tuple[Literal["workload"], WorkloadId]
    | tuple[Literal["budget"], BudgetKey]
    | tuple[Literal["unknown budgets"], str]
)
By = TypeVar("By")


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


class Candidates:
    def __init__(
        self,
        kit: Kit,
        workloads: Workloads,
        budgets: Budgets,
        config: HerderConfig,
        guard: WebhookGuard,
        wake: Callable[[], None],
    ) -> None:
        """`wake` is called when there is something to look at."""
        self._workloads, self._budgets, self._config, self._guard, self._wake = workloads, budgets, config, guard, wake
        self._jobs: Cache[PodMigrationJob] = kit.caches.of(JOBS)
        self._pods: Cache[Pod] = kit.caches.of(PODS)
        self._instances: Cache[VirtualMachineInstance] = kit.caches.of(INSTANCES)
        self.standing = Standing(config.jobs())
        self.looked: dict[str, Looked] = {}
        # Those that were admitted, in this very state, and of which the cache does not show yet what became of them.
        self.admitted: dict[str, Stored[PodMigrationJob]] = {}
        self._dirty: dict[str, None] = {}
        self._unfinished: dict[Key, dict[str, None]] = {}
        # Jobs by what they depend on, and what each depends on. Dicts in place of sets: their order does not depend on hashes.
        self._jobs_by: dict[Place, dict[str, None]] = {}
        self._depends_on: dict[str, tuple[Place, ...]] = {}
        # Those whose workload has to be asked, or whose budgets could not be found out: nobody tells of that.
        self._asked: dict[str, None] = {}
        self.history = History(self._jobs, self._history_changed)
        self._jobs.subscribe(self._job_changed)
        self._pods.subscribe(lambda change: self._mark(self._unfinished.get(change.key, ())))
        workloads.subscribe(lambda workload: self._mark(self._jobs_by.get(("workload", workload), ())))
        budgets.subscribe(self._budget_changed)
        config.subscribe(lambda: self._mark(self._depends_on), JOBS_FILE)
        guard.subscribe(lambda: self._mark(self._depends_on))

    def refresh(self, most: int) -> bool:
        """Looks again at some of what has changed; whether more is left."""
        self.standing.set_config(self._config.jobs())
        for name in list(self._dirty)[:most]:
            del self._dirty[name]
            self._look(name)
        return bool(self._dirty)

    @property
    def asks(self) -> bool:
        """Whether there is something that nobody tells of."""
        return bool(self._asked)

    def ask_again(self) -> None:
        self._mark(self._asked)

    def look_again_at(self, name: str) -> None:
        """What was decided of it could not be done."""
        self.admitted.pop(name, None)
        self._mark((name,))

    def running(self) -> list[PodMigrationJob]:
        """As the cache shows them: not those of which it does not show yet that they were admitted."""
        views = (view_of(self._jobs.stored(Key("", name))) for name in self.standing.migrating)
        return [view for view in views if view is not None and phase_of(view) == "Running"]

    def as_migrating(self, job: PodMigrationJob) -> tuple[Migrating, PodBudgets]:
        """A job that runs, with the budgets of its pod."""
        pod = self.pod_of(job)
        budgets = NO_BUDGETS
        view = view_of(pod)
        if pod is not None and view is not None and claims_budgets(job, view, self._config.jobs()):
            budgets = self._budgets.of(pod, self._workloads.of(pod))
        return migrating(job, view), budgets

    # --- one job -----------------------------------------------------------------------------------------------------------------

    def _look(self, name: str) -> None:
        stored = self._jobs.stored(Key("", name))
        job = view_of(stored)
        if stored is not None and job is None:
            return  # it cannot be read: it counts as what it was
        if stored is None or job is None or is_over(job):
            self._forget(name)
        elif phase_of(job) == "Running":
            self._forget_admitted(name)
            self._look_at_running(job)
        elif (admitted := self.admitted.get(name)) is None or admitted.version != stored.version:
            self._forget_admitted(name)
            if is_aborted(job):
                self._forget(name)
            else:
                self._look_at_pending(stored, job)

    def _look_at_pending(self, stored: Stored[PodMigrationJob], job: PodMigrationJob) -> None:
        looked = self.look(stored, job)
        workload = looked.workload
        if looked.state is not None:
            self.standing.set_workload(looked.state)
        self.standing.set_pending(looked.candidate, looked.budgets)
        self.looked[job.name] = looked
        self._depend(job, looked.pod, workload, looked.budgets)
        if looked.budgets.problem or _is_foreign(workload):
            self._asked[job.name] = None
        else:
            self._asked.pop(job.name, None)

    def _look_at_running(self, job: PodMigrationJob) -> None:
        self.looked.pop(job.name, None)
        self._asked.pop(job.name, None)
        running, budgets = self.as_migrating(job)
        self.standing.set_migrating(running, budgets)
        self._depend(job, self.pod_of(job), None, budgets)

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
            failures=self.history.failures(view.uid),
            deschedulings=self.history.deschedulings(workload.id if workload is not None else None),
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
        names = self._unfinished.get(_pod_key(job), {})
        if len(names) < 2:
            return ""
        found = (view_of(self._jobs.stored(Key("", name))) for name in names)
        first = goes_on([one for one in found if one is not None])
        return why_another_has_it(job, first) if first is not None and first.name != job.name else ""

    # --- what changes ------------------------------------------------------------------------------------------------------------

    def _mark(self, names: Iterable[str]) -> None:
        if names:
            self._dirty |= dict.fromkeys(names)
            self._wake()

    def _job_changed(self, change: Change[PodMigrationJob]) -> None:
        name, before, after = change.key.name, view_of(change.old), view_of(change.new)
        if change.new is not None and after is None:
            return
        known = name in self._depends_on
        for job in (before, after):
            if job is not None:
                self._mark([one for one in self._unfinished.get(_pod_key(job), ()) if one != name])
        if before is not None:
            _take_away(self._unfinished, _pod_key(before), name)
        if after is not None and not is_over(after):
            self._unfinished.setdefault(_pod_key(after), {})[name] = None
            known = True
        if known:
            self._mark((name,))

    def _budget_changed(self, key: BudgetKey) -> None:
        """Whom it was about, whom it is about, and those of its namespace of whose budgets nothing is known."""
        if not self._unfinished:
            return
        names = {**self._jobs_by.get(("budget", key), {}), **self._jobs_by.get(("unknown budgets", key[1]), {})}
        for pod in self._budgets.pods_of(key):
            names |= self._unfinished.get(pod, {})
        self._mark(names)

    def _history_changed(self, pod_uid: str, workload: WorkloadId | None) -> None:
        self._mark(self._jobs_by.get(("uid", pod_uid), ()))
        if workload is not None:
            self._mark(self._jobs_by.get(("workload", workload), ()))

    # --- who depends on what -----------------------------------------------------------------------------------------------------

    def _depend(self, job: PodMigrationJob, pod: Stored[Pod] | None, workload: Workload | None, budgets: PodBudgets) -> None:
        places: list[Place] = [("budget", (one.kind, one.namespace, one.name)) for one in budgets.budgets]
        if pod is not None:
            places.append(("uid", pod.uid))
        if workload is not None:
            places.append(("workload", workload.id))
        if budgets.problem:
            places.append(("unknown budgets", job.spec.pod_ref.namespace))
        name, before = job.name, self._depends_on.get(job.name, ())
        self._depends_on[name] = tuple(places)
        for place in places:
            self._jobs_by.setdefault(place, {})[name] = None
        for place in before:
            if place not in places:
                self._leave(name, place)

    def _leave(self, name: str, place: Place) -> None:
        _take_away(self._jobs_by, place, name)
        if place[0] == "workload" and place not in self._jobs_by:
            self.standing.forget_workload(place[1])

    def _forget_admitted(self, name: str) -> None:
        self.admitted.pop(name, None)

    def _forget(self, name: str) -> None:
        self._forget_admitted(name)
        self.standing.remove(name)
        self.looked.pop(name, None)
        self._asked.pop(name, None)
        for place in self._depends_on.pop(name, ()):
            self._leave(name, place)


def _pod_key(job: PodMigrationJob) -> Key:
    return Key(job.spec.pod_ref.namespace, job.spec.pod_ref.name)


def _is_foreign(workload: Workload | None) -> bool:
    return workload is not None and workload.group_kind not in KNOWN and workload.group_kind not in WITHOUT_SCALE


def _take_away(by: dict[By, dict[str, None]], place: By, name: str) -> None:
    jobs = by.get(place)
    if jobs is not None:
        jobs.pop(name, None)
        if not jobs:
            del by[place]
