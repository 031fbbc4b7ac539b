"""Arbitration that goes on decides what one pass over everything would."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration import Candidate, arbitrate, standing
from herder.rules.jobs.arbitration.arbitrate import as_migrating
from herder.rules.jobs.arbitration.snapshot import WorkloadState
from herder.rules.jobs.arbitration.standing import Standing
from herder.rules.jobs.budgets import PodBudgets
from herder.rules.jobs.replicas import Replicas
from herder.rules.jobs.workload import Controller, Workload
from tests.unit.rules.jobs.jobs import budget, job

WORKLOADS = ("a", "b", "c")


class Everything:
    """The same changes, told to what goes on, and kept for a pass over all of it."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.standing = Standing(self._config())
        self._allowed = dict.fromkeys(WORKLOADS, 1)
        self._numbers = iter(range(10_000))
        for name in WORKLOADS:
            self.standing.set_workload(self._state(name))

    def _config(self) -> JobsConfig:
        pick = self._chance.choice
        return JobsConfig(
            enabled=self._chance.random() > 0.1,
            max_migrating_globally=pick([None, 1, 3, 8]),
            max_migrating_per_node=pick([1, 3, 5]),
            max_migrating_per_namespace=pick([None, 1, 4]),
            max_migrating_per_workload=pick([None, 2, "50%"]),
            max_unavailable_per_workload=pick([None, 3, "100%"]),
        )

    def _state(self, name: str) -> WorkloadState:
        controller = Controller("apps/v1", "ReplicaSet", name, name)
        replicas, rolls = self._chance.randrange(2, 12), self._chance.random() < 0.1
        made = Workload(
            api_version="apps/v1",
            kind="ReplicaSet",
            namespace="default",
            name=name,
            uid=name,
            controller=controller,
            replicas=replicas,
            rolling_out=rolls,
        )
        ready = frozenset(f"uid-{number}" for number in range(self._chance.randrange(60)))
        return WorkloadState(made, Replicas(available=ready, missing=self._chance.randrange(2)))

    def _budgets(self, workload: str) -> PodBudgets:
        """Workload a has a budget, b has none, of c nobody knows at times."""
        if workload == "a":
            return PodBudgets((budget(self._allowed["a"], "a"),))
        return PodBudgets((), "not known" if workload == "c" and self._allowed["c"] > 1 else "")

    def _set(self, one: Candidate) -> None:
        assert one.pod is not None and one.pod.workload is not None
        self.standing.set_pending(one, self._budgets(one.pod.workload[1]))

    def change(self) -> None:
        do = self._chance.choice(
            [self.come, self.come, self.go, self.end, self.end, self.end, self.evict, self.pause, self.workload, self.allow]
        )
        do() if self._chance.random() > 0.03 else self.standing.set_config(self._config())

    def come(self) -> None:
        number, pick = next(self._numbers), self._chance.choice
        about: dict[str, Any] = {
            "uid": f"uid-{number}",
            "node": pick(["n1", "n2", "n3", ""]),
            "namespace": pick(["default", "other"]),
            "workload": ("default", pick(WORKLOADS)),
            "ready": self._chance.random() < 0.8,
            "priority": pick([0, 1]),
            "paused": self._chance.random() < 0.1,
        }
        self._set(job(f"job-{number}", created=pick([1.0, 2.0]), **about))

    def _some(self) -> Candidate | None:
        pending = self.standing.snapshot().pending
        return self._chance.choice(pending) if pending else None

    def go(self) -> None:
        one = self._some()
        if one is not None:
            self.standing.remove(one.name)

    def pause(self) -> None:
        one = self._some()
        if one is not None:
            self._set(msgspec.structs.replace(one, paused=not one.paused))

    def end(self) -> None:
        names = [*self.standing.migrating]
        if names:
            self.standing.remove(self._chance.choice(names))

    def evict(self) -> None:
        names = [*self.standing.migrating]
        if names:
            one = self.standing.migrating[self._chance.choice(names)]
            self.standing.set_migrating(msgspec.structs.replace(one, evicted=True), self.standing.budgets_of(one.uid))

    def workload(self) -> None:
        self.standing.set_workload(self._state(self._chance.choice(WORKLOADS)))

    def allow(self) -> None:
        name = self._chance.choice(WORKLOADS)
        self._allowed[name] = self._chance.randrange(4)
        for one in self.standing.snapshot().pending:
            self._set(one)
        for running in list(self.standing.migrating.values()):
            if running.workload is not None:
                self.standing.set_migrating(running, self._budgets(running.workload[1]))


@pytest.mark.parametrize("seed", range(25))
def test_after_any_changes_the_same_jobs_begin_as_in_one_pass_over_everything(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "AT_ONCE", 2)
    chance = random.Random(seed)
    everything = Everything(chance)
    begun = 0
    for _ in range(150):
        for _ in range(chance.randrange(1, 4)):
            everything.change()
        whole = arbitrate(everything.standing.snapshot())
        decided = everything.standing.decide()
        assert decided.admitted == whole.admitted
        begun += len(decided.admitted)
        # Whoever waits is told why, and by something that really holds it now.
        again = arbitrate(everything.standing.snapshot())
        assert not again.admitted
        assert set(everything.standing.held) == set(again.waiting)
    assert begun > 10


def test_with_nothing_new_nobody_is_looked_at() -> None:
    known = Standing(JobsConfig(max_migrating_globally=1))
    for number in range(4):
        known.set_pending(job(f"job-{number}", workload=None))
    assert known.decide().admitted == ("job-0",)
    assert known.decide() is standing.NOTHING_NEW
    # The same again is nothing new either.
    known.set_pending(job("job-1", workload=None))
    known.set_config(JobsConfig(max_migrating_globally=1))
    assert known.decide() is standing.NOTHING_NEW
    known.remove("job-0")
    assert known.decide().admitted == ("job-1",)


def test_of_all_that_wait_for_the_global_limit_only_some_are_looked_at() -> None:
    known = Standing(JobsConfig(max_migrating_globally=1))
    for number in range(10 * standing.AT_ONCE):
        known.set_pending(job(f"job-{number:05}", workload=None))
    known.decide()
    known.remove("job-00000")
    decided = known.decide()
    assert decided.admitted == ("job-00001",) and len(decided.waiting) < standing.AT_ONCE


def test_two_jobs_of_one_pod_do_not_take_its_budgets_from_each_other() -> None:
    known = Standing()
    both = PodBudgets((budget(0),))
    known.set_pending(job("first", uid="same"), both)
    known.set_pending(job("second", uid="same"), both)
    known.remove("second")
    assert known.budgets_of("same") == both
    assert [*known.decide().waiting] == ["first"]


def test_a_job_that_could_not_be_let_begin_is_asked_again() -> None:
    known = Standing()
    one = job("a", workload=None)
    known.set_pending(one)
    assert known.decide().admitted == ("a",)
    assert one.pod is not None and known.migrating["a"] == as_migrating(one, one.pod)
    known.set_pending(one)
    assert not known.migrating and known.decide().admitted == ("a",)
