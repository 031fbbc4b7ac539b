"""What holds a herd of migration jobs: one pass over all that wait, when none may begin and when as many as the limits let.

There is nobody to compare with: Koordinator's arbitrator is a part of its descheduler, and looks at jobs one by one. The aims are
ours.
"""

from __future__ import annotations

import statistics
import time

from bench.report import LESS, Report, Row
from bench.sides import Options
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration import ArbitrationSnapshot, Candidate, CandidatePod, WorkloadState, arbitrate
from herder.rules.jobs.budgets import Budget, PodBudgets
from herder.rules.jobs.replicas import Replicas
from herder.rules.jobs.workload import Controller, Workload

NAME = "jobs"
ROUNDS = 7
REPLICAS = 50
MOST_MS = 300.0
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
    notes = [f"{nodes} nodes, {workloads} workloads of {REPLICAS} replicas, a budget for every second; medians of {ROUNDS}"]
    return Report(NAME, "arbitration of migration jobs", rows, notes)


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
