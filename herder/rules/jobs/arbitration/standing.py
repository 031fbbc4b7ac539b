"""Arbitration that goes on: what is known of all jobs is kept from one pass to the next, and only those are looked at again that a
change may let begin. What it decides is what `arbitrate` would decide of all of them.

A job that is held is held by one limit: of a node, a namespace, a workload, budgets, or of all together. Within a pass limits are
only used up. So as long as nothing was given back where it is held, it still is, and nobody need look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from herder.api import reasons
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration.arbitrate import Arbitration, arbitrate, as_migrating
from herder.rules.jobs.arbitration.limits import Wait
from herder.rules.jobs.arbitration.snapshot import (
    NO_BUDGETS,
    ArbitrationSnapshot,
    Candidate,
    Migrating,
    WorkloadId,
    WorkloadState,
)
from herder.rules.jobs.arbitration.sorters import SortKey, sort_key
from herder.rules.jobs.budgets import PodBudgets

Where = TypeVar("Where")
# What holds jobs, or is used up by them: a word, and of which node, namespace, workload or budget.
Place = tuple[str, object]
EVERYWHERE: Place = ("all", "")
NOTHING_NEW = Arbitration()
# So many are looked at before the global limit is asked whether it is worth going on.
AT_ONCE = 128
_OF_WORKLOADS = (reasons.WAITING_FOR_WORKLOAD_LIMIT, reasons.ROLLOUT_IN_PROGRESS)


class Standing:
    """Where all unfinished jobs stand."""

    def __init__(self, config: JobsConfig | None = None) -> None:
        self._config = config or JobsConfig()
        self._pending: dict[str, Candidate] = {}
        self._migrating: dict[str, Migrating] = {}
        # How many of each workload migrate.
        self._of_workload: Counter[WorkloadId] = Counter()
        self._workloads: dict[WorkloadId, WorkloadState] = {}
        # By the uid of a pod, with how many jobs are about it.
        self._budgets: dict[str, PodBudgets] = {}
        self._users: Counter[str] = Counter()
        self._held: dict[str, Wait] = {}
        self._held_at: dict[str, tuple[Place, ...]] = {}
        self._jobs_at: dict[Place, dict[str, None]] = {}
        # The order of those that wait, as far as it is known; of these workloads it is another one by now.
        self._keys: dict[str, SortKey] = {}
        self._waiting_of: dict[WorkloadId, dict[str, None]] = {}
        self._recounted: dict[WorkloadId, None] = {}
        # Jobs that changed, and places where something was given back.
        self._news: dict[str, None] = {}
        self._freed: dict[Place, None] = {}

    # --- what there is -----------------------------------------------------------------------------------------------------------

    @property
    def held(self) -> Mapping[str, Wait]:
        """Jobs that wait, and why, as of the last pass."""
        return self._held

    @property
    def migrating(self) -> Mapping[str, Migrating]:
        return self._migrating

    @property
    def config(self) -> JobsConfig:
        return self._config

    def budgets_of(self, uid: str) -> PodBudgets:
        return self._budgets.get(uid, NO_BUDGETS)

    def is_pending(self, name: str) -> bool:
        return name in self._pending

    def snapshot(self, names: Iterable[str] | None = None) -> ArbitrationSnapshot:
        """Of everything, or with only these of the jobs that wait."""
        pending = self._pending.values() if names is None else [self._pending[name] for name in names]
        return ArbitrationSnapshot(
            config=self._config,
            pending=tuple(pending),
            migrating=tuple(self._migrating.values()),
            workloads=self._workloads,
            budgets=self._budgets,
        )

    # --- what changes ------------------------------------------------------------------------------------------------------------

    def set_config(self, config: JobsConfig) -> None:
        if config != self._config:
            self._config = config
            self._news |= dict.fromkeys(self._pending)

    def set_pending(self, job: Candidate, budgets: PodBudgets = NO_BUDGETS) -> None:
        if self._pending.get(job.name) == job and (job.pod is None or self.budgets_of(job.pod.uid) == budgets):
            return
        self.remove(job.name)
        self._pending[job.name] = job
        if job.pod is not None:
            self._use(job.pod.uid, budgets)
            if job.pod.workload is not None:
                self._waiting_of.setdefault(job.pod.workload, {})[job.name] = None
        self._news[job.name] = None

    def set_migrating(self, job: Migrating, budgets: PodBudgets = NO_BUDGETS) -> None:
        if self._migrating.get(job.job) == job and self.budgets_of(job.uid) == budgets:
            return
        self.remove(job.job)
        self._count(job)
        self._use(job.uid, budgets)

    def remove(self, name: str) -> None:
        """A job that is over, or is about to become something else."""
        waited = self._pending.pop(name, None)
        if waited is not None:
            self._release(name)
            self._keys.pop(name, None)
            self._news.pop(name, None)
            if waited.pod is not None:
                self._leave(waited.pod.uid)
                if waited.pod.workload is not None:
                    _take_away(self._waiting_of, waited.pod.workload, name)
        ran = self._migrating.pop(name, None)
        if ran is not None:
            self._freed |= dict.fromkeys(self._used_by(ran))
            if ran.workload is not None:
                self._of_workload[ran.workload] -= 1
                if not self._of_workload[ran.workload]:
                    del self._of_workload[ran.workload]
                self._recounted[ran.workload] = None
            self._leave(ran.uid)

    def set_workload(self, state: WorkloadState) -> None:
        workload = state.workload.id
        if self._workloads.get(workload) != state:
            self._workloads[workload] = state
            self._freed["workload", workload] = None

    def forget_workload(self, workload: WorkloadId) -> None:
        """No job that waits is about it any more."""
        self._workloads.pop(workload, None)

    # --- a pass ------------------------------------------------------------------------------------------------------------------

    def decide(self) -> Arbitration:
        """News only: `waiting` has those that were looked at again. What it admits counts as migrating from here on."""
        if not self._news and not self._freed:
            return NOTHING_NEW
        names, crowd = dict(self._news), self._jobs_at.get(EVERYWHERE, {}) if EVERYWHERE in self._freed else {}
        for place in self._freed:
            if place != EVERYWHERE:
                names |= self._jobs_at.get(place, {})
        self._news, self._freed = {}, {}
        self._forget_order()
        if not crowd or self._is_full():
            return self._arbitrate(self._ordered(names))
        return self._in_order(names, crowd)

    def _in_order(self, names: dict[str, None], crowd: dict[str, None]) -> Arbitration:
        """Of those that wait for the global limit only as many as it lets begin, in the order in which all would be asked."""
        ordered = self._ordered(names | crowd)
        found: list[Arbitration] = []
        for start in range(0, len(ordered), AT_ONCE):
            if self._is_full():
                found.append(self._arbitrate([name for name in ordered[start:] if name in names]))
                break
            found.append(self._arbitrate(ordered[start : start + AT_ONCE]))
        return _together(found)

    def _is_full(self) -> bool:
        most = self._config.max_migrating_globally
        return most is not None and len(self._migrating) >= most

    def _forget_order(self) -> None:
        for workload in self._recounted:
            for name in self._waiting_of.get(workload, ()):
                self._keys.pop(name, None)
        self._recounted = {}

    def _ordered(self, names: Iterable[str]) -> list[str]:
        """As it is at the beginning of the pass: what is admitted on the way does not change it."""
        for name in names:
            if name not in self._keys:
                self._keys[name] = self._key(self._pending[name])
        return sorted(names, key=self._keys.__getitem__)

    def _key(self, job: Candidate) -> SortKey:
        pod = job.pod
        if pod is None:
            return (), job.name
        return sort_key(job, pod, self._of_workload[pod.workload] if pod.workload is not None else 0)

    def _arbitrate(self, names: Sequence[str]) -> Arbitration:
        """`names` are in order."""
        if not names:
            return NOTHING_NEW
        decided = arbitrate(self.snapshot(names), self._keys.__getitem__)
        for name in names:
            self._release(name)
        for name in decided.admitted:
            self._admit(self._pending[name])
        for name, wait in decided.waiting.items():
            self._hold(name, wait)
        return decided

    def _admit(self, job: Candidate) -> None:
        pod = job.pod
        assert pod is not None
        budgets = self.budgets_of(pod.uid)
        self.remove(job.name)
        self._count(as_migrating(job, pod))
        self._use(pod.uid, budgets)

    # --- who is held where -------------------------------------------------------------------------------------------------------

    def _hold(self, name: str, wait: Wait) -> None:
        self._held[name] = wait
        places = self._held_at[name] = tuple(self._places(self._pending[name], wait))
        for place in places:
            self._jobs_at.setdefault(place, {})[name] = None

    def _release(self, name: str) -> None:
        self._held.pop(name, None)
        for place in self._held_at.pop(name, ()):
            _take_away(self._jobs_at, place, name)

    def _places(self, job: Candidate, wait: Wait) -> Iterable[Place]:
        """None for what only a change of the job itself, of its pod, its budgets or the configuration would let begin."""
        pod = job.pod
        if pod is None:
            return ()
        if wait.reason == reasons.WAITING_FOR_GLOBAL_LIMIT:
            return (EVERYWHERE,)
        if wait.reason == reasons.WAITING_FOR_NODE_LIMIT:
            return (("node", pod.node),)
        if wait.reason == reasons.WAITING_FOR_NAMESPACE_LIMIT:
            return (("namespace", pod.namespace),)
        if wait.reason in _OF_WORKLOADS:
            return (("workload", pod.workload),)
        if wait.reason == reasons.WAITING_FOR_DISRUPTION_BUDGET:
            return [("budget", budget.uid) for budget in self.budgets_of(pod.uid).budgets]
        return ()

    def _used_by(self, job: Migrating) -> Iterable[Place]:
        places: list[Place] = [EVERYWHERE, ("node", job.node), ("namespace", job.namespace), ("workload", job.workload)]
        return places + [("budget", budget.uid) for budget in self.budgets_of(job.uid).budgets]

    def _count(self, job: Migrating) -> None:
        self._migrating[job.job] = job
        if job.workload is not None:
            self._of_workload[job.workload] += 1
            self._recounted[job.workload] = None

    def _use(self, uid: str, budgets: PodBudgets) -> None:
        self._users[uid] += 1
        self._budgets[uid] = budgets

    def _leave(self, uid: str) -> None:
        self._users[uid] -= 1
        if not self._users[uid]:
            del self._users[uid]
            self._budgets.pop(uid, None)


def _take_away(jobs_at: dict[Where, dict[str, None]], place: Where, name: str) -> None:
    jobs = jobs_at[place]
    del jobs[name]
    if not jobs:
        del jobs_at[place]


def _together(found: Sequence[Arbitration]) -> Arbitration:
    waiting: dict[str, Wait] = {}
    for one in found:
        waiting |= one.waiting
    return Arbitration(
        tuple(name for one in found for name in one.admitted),
        waiting,
        {name: refused for one in found for name, refused in one.refused.items()},
    )
