"""What arbitration looks at, kept ready from caches: each job is looked at again only when it, its pod, its workload, its budgets
or its history have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.controllers.configuration import HerderConfig
from herder.controllers.job.budgets import BudgetKey, Budgets
from herder.controllers.job.history import History
from herder.controllers.job.looks import Looked, Looks, pod_key
from herder.controllers.job.webhook_guard import WebhookGuard
from herder.controllers.job.workloads import Workloads
from herder.kube.cache import Cache, Change, Stored, view_of
from herder.kube.kit import Kit
from herder.kube.resources import JOBS, PODS, Key
from herder.rules.herder_config import JOBS as JOBS_FILE
from herder.rules.jobs.arbitration.candidate import (
    is_aborted,
)
from herder.rules.jobs.arbitration.snapshot import WorkloadId
from herder.rules.jobs.arbitration.standing import Standing
from herder.rules.jobs.budgets import PodBudgets
from herder.rules.jobs.execution.status import is_over, phase_of
from herder.rules.jobs.workload import KNOWN, WITHOUT_SCALE, Workload

# What jobs depend on. Of namespaces: where budgets are not known.
Place = (
    tuple[Literal["uid"], str]
    | tuple[Literal["workload"], WorkloadId]
    | tuple[Literal["budget"], BudgetKey]
    | tuple[Literal["unknown budgets"], str]
)
By = TypeVar("By")


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
        self._budgets, self._config, self._wake = budgets, config, wake
        self._jobs: Cache[PodMigrationJob] = kit.caches.of(JOBS)
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
        history = History(self._jobs, self._history_changed)
        self.looks = Looks(kit, workloads, budgets, config, guard, history, self._unfinished)
        self._jobs.subscribe(self._job_changed)
        kit.caches.of(PODS).subscribe(lambda change: self._mark(self._unfinished.get(change.key, ())))
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
        looked = self.looks.look(stored, job)
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
        running, budgets = self.looks.as_migrating(job)
        self.standing.set_migrating(running, budgets)
        self._depend(job, self.looks.pod_of(job), None, budgets)

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
                self._mark([one for one in self._unfinished.get(pod_key(job), ()) if one != name])
        if before is not None:
            _take_away(self._unfinished, pod_key(before), name)
        if after is not None and not is_over(after):
            self._unfinished.setdefault(pod_key(after), {})[name] = None
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


def _is_foreign(workload: Workload | None) -> bool:
    return workload is not None and workload.group_kind not in KNOWN and workload.group_kind not in WITHOUT_SCALE


def _take_away(by: dict[By, dict[str, None]], place: By, name: str) -> None:
    jobs = by.get(place)
    if jobs is not None:
        jobs.pop(name, None)
        if not jobs:
            del by[place]
