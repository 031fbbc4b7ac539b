"""What holds a herd of migration jobs: one pass over all that wait, when none may begin and when as many as the limits let; and
what it costs when nothing, or only one thing, has changed since the last one.

There is nobody to compare with: Koordinator's arbitrator is a part of its descheduler, and looks at jobs one by one. The aims are
ours.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import statistics
import time
from collections.abc import Callable

from bench.job_objects import Told, fill, kit_of, ready, running, settings
from bench.report import LESS, Report, Row
from bench.sides import Options
from herder.controllers.configuration import HerderConfig
from herder.controllers.job.budgets import Budgets
from herder.controllers.job.candidates import Candidates
from herder.controllers.job.webhook_guard import WebhookGuard
from herder.controllers.job.workloads import Workloads
from herder.kube.discovery import Discovery
from herder.kube.resources import CONFIG_MAPS, JOBS, PODS
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration import ArbitrationSnapshot, Candidate, CandidatePod, WorkloadState, arbitrate
from herder.rules.jobs.budgets import Budget, PodBudgets
from herder.rules.jobs.replicas import Replicas
from herder.rules.jobs.workload import Controller, Workload

NAME = "jobs"
ROUNDS = 7
REPLICAS = 50
MOST_MS = 300.0
NOTHING_NEW_MS, ONE_CHANGE_MS = 1.0, 10.0
CHANGES = 50
# So many run, and each waiting job waits for one of them.
GLOBALLY = 100
# So that jobs do not come in the order in which they were made.
PRIME = 10_007


def run(options: Options) -> Report:
    jobs, nodes, workloads = options.pick(10_000, 1000), options.pick(5000, 500), options.pick(2000, 200)
    cases = {
        "none may begin": JobsConfig(max_migrating_globally=0),
        "each is held by its workload or its budget": JobsConfig(max_migrating_per_workload=0, max_migrating_per_node=jobs),
        "all may begin": JobsConfig(
            max_migrating_per_workload="100%", max_unavailable_per_workload="100%", max_migrating_per_node=jobs
        ),
    }
    rows: list[Row] = []
    for case, config in cases.items():
        whole = snapshot(config, jobs, nodes, workloads, generous=case == "all may begin")
        assert len(arbitrate(whole).admitted) == (jobs if case == "all may begin" else 0)
        spent = statistics.median(_milliseconds(whole) for _ in range(options.pick(ROUNDS, 2)))
        rows.append(Row(f"a pass over {jobs} jobs: {case}", "ms", spent, None, LESS, f"≤ {MOST_MS:.0f} ms", spent <= MOST_MS))
    rows += asyncio.run(_changes(jobs, nodes, workloads))
    notes = [
        f"{nodes} nodes, {workloads} workloads of {REPLICAS} replicas, a budget for every second; medians of {ROUNDS}",
        f"changes: from when the cache has one until all is decided anew, medians of {CHANGES}; {GLOBALLY} jobs run",
    ]
    return Report(NAME, "arbitration of migration jobs", rows, notes)


class Followed:
    """All that arbitration follows, without a server."""

    def __init__(self, jobs: int, nodes: int, workloads: int) -> None:
        self.told = Told()
        self.jobs, self.pods = fill(self.told, jobs, nodes, workloads)
        for number in range(GLOBALLY):
            self.jobs[number] |= running(self.jobs[number], self.pods[number])
        self.told.put(CONFIG_MAPS, settings(f"maxMigratingGlobally: {GLOBALLY}\nmaxMigratingPerNode: {jobs}"))
        self.kit = kit_of(self.told)
        self.began = 0.0
        self._news = asyncio.Event()
        # Subscribed before everybody else: from here on it takes time.
        self.kit.caches.of(PODS).subscribe(lambda _: self._noted())
        self.kit.caches.of(JOBS).subscribe(lambda _: self._noted())
        discovery = Discovery(self.kit.client)
        self._workloads = Workloads(self.kit, discovery)
        self.budgets = Budgets(self.kit, discovery, self._workloads)
        self.guard = WebhookGuard(self.kit, discovery)
        config = HerderConfig(self.kit.caches)
        self.candidates = Candidates(self.kit, self._workloads, self.budgets, config, self.guard, lambda: None)

    def _noted(self) -> None:
        self.began = time.perf_counter()
        self._news.set()

    def decide(self) -> float:
        """Milliseconds, from `began`."""
        while self.candidates.refresh(10**6):
            pass
        self.candidates.standing.decide()
        return (time.perf_counter() - self.began) * 1000

    async def after(self, change: Callable[[], None]) -> float:
        self._news.clear()
        change()
        await self._news.wait()
        return self.decide()


async def _changes(jobs: int, nodes: int, workloads: int) -> list[Row]:
    followed = Followed(jobs, nodes, workloads)
    caches = asyncio.create_task(followed.kit.caches.run())
    try:
        await followed.kit.caches.wait_synced()
        await followed.budgets.look_for_kruise()
        await followed.guard.find_out()
        followed.decide()
        # As the program does after its start.
        gc.collect()
        gc.freeze()
        assert len(followed.candidates.standing.held) == jobs - GLOBALLY
        return await _measured(followed, jobs)
    finally:
        gc.unfreeze()
        caches.cancel()
        await asyncio.wait([caches])


async def _measured(followed: Followed, jobs: int) -> list[Row]:
    nothing: list[float] = []
    for _ in range(CHANGES):
        followed.began = time.perf_counter()
        nothing.append(followed.decide())
    last = itertools.count(jobs - 1, -1)
    flips = [await followed.after(lambda: _flip(followed, next(last))) for _ in range(CHANGES)]
    ends = itertools.count()
    ended = [await followed.after(lambda: _end(followed, next(ends))) for _ in range(CHANGES)]
    assert len(followed.candidates.standing.migrating) == GLOBALLY
    return [
        _row(f"{jobs} jobs, nothing new", statistics.median(nothing), NOTHING_NEW_MS),
        _row(f"{jobs} jobs, a pod becomes unready", statistics.median(flips), ONE_CHANGE_MS),
        _row(f"{jobs} jobs, one ends and the next begins", statistics.median(ended), ONE_CHANGE_MS),
    ]


def _row(what: str, spent: float, most: float) -> Row:
    return Row(what, "ms", spent, None, LESS, f"≤ {most:.0f} ms", spent <= most)


def _flip(followed: Followed, number: int) -> None:
    followed.told.change(PODS, ready(followed.pods[number], False))


def _end(followed: Followed, number: int) -> None:
    followed.told.change(JOBS, running(followed.jobs[number], followed.pods[number], "Succeed"))


def _milliseconds(whole: ArbitrationSnapshot) -> float:
    began = time.perf_counter()
    arbitrate(whole)
    return (time.perf_counter() - began) * 1000


def snapshot(config: JobsConfig, jobs: int, nodes: int, workloads: int, *, generous: bool) -> ArbitrationSnapshot:
    pending = tuple(_job(number, nodes, workloads) for number in range(jobs))
    budgets = {
        f"uid-{number}": PodBudgets((_budget(number % workloads, jobs if generous else 1),))
        for number in range(jobs)
        if (number % workloads) % 2
    }
    states = {_workload(number): _state(number) for number in range(workloads)}
    return ArbitrationSnapshot(config=config, pending=pending, workloads=states, budgets=budgets)


def _workload(number: int) -> tuple[str, str]:
    return f"team-{number % 50}", f"workload-{number}"


def _job(number: int, nodes: int, workloads: int) -> Candidate:
    workload = _workload(number % workloads)
    pod = CandidatePod(
        namespace=workload[0],
        name=f"pod-{number}",
        uid=f"uid-{number}",
        node=f"node-{number % nodes}",
        labels={"app": workload[1]},
        qos=("LSR", "LS", "BE")[number % 3],
        priority=number % 5,
        workload=workload,
    )
    return Candidate(name=f"job-{number}", created=float(number * 7919 % PRIME), pod=pod)


def _state(number: int) -> WorkloadState:
    namespace, name = _workload(number)
    controller = Controller("apps/v1", "ReplicaSet", f"{name}-1", f"rs-{number}")
    made = Workload(
        api_version="apps/v1",
        kind="Deployment",
        namespace=namespace,
        name=name,
        uid=name,
        controller=controller,
        replicas=REPLICAS,
    )
    return WorkloadState(made, Replicas(available=frozenset(f"uid-{one}" for one in range(REPLICAS))))


def _budget(number: int, allowed: int) -> Budget:
    namespace, name = _workload(number)
    return Budget(kind="PodDisruptionBudget", namespace=namespace, name=name, uid=f"budget-{number}", allowed=allowed)
