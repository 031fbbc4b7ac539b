"""Jobs that wait and jobs that run, in a few words."""

from __future__ import annotations

from typing import Any

from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.arbitration import (
    Arbitration,
    ArbitrationSnapshot,
    Candidate,
    CandidatePod,
    Migrating,
    WorkloadState,
    arbitrate,
)
from herder.rules.jobs.budgets import Budget, PodBudgets
from herder.rules.jobs.replicas import PodState, count_replicas
from herder.rules.jobs.workload import Controller, Workload

WEB = ("default", "web")


def job(name: str, *, pod: CandidatePod | None = None, created: float = 0.0, **more: Any) -> Candidate:
    """Its pod has its name, and a node of its own; of the workload `web`."""
    about = {field: more.pop(field) for field in list(more) if field in CandidatePod.__struct_fields__}
    return Candidate(name=name, created=created, pod=pod or pod_of(name, **about), **more)


def pod_of(name: str, **more: Any) -> CandidatePod:
    defaults: dict[str, Any] = {"namespace": "default", "uid": name, "node": f"node-of-{name}", "workload": WEB}
    return CandidatePod(name=name, **{**defaults, **more})


def running(name: str, **more: Any) -> Migrating:
    defaults: dict[str, Any] = {"namespace": "default", "uid": name, "pod": name, "node": f"node-of-{name}", "workload": WEB}
    return Migrating(job=name, **{**defaults, **more})


def workload(replicas: int | None = 100, *pods: PodState, kind: str = "Deployment", **more: Any) -> WorkloadState:
    """All of its replicas are ready, but for what is said of some."""
    named = {pod.uid for pod in pods}
    others = [PodState(str(number), f"other-{number}", ready=True) for number in range((replicas or 0) - len(named))]
    controller = Controller("apps/v1", "ReplicaSet", "web-1", "rs")
    made = Workload(
        api_version="apps/v1",
        kind=kind,
        namespace="default",
        name="web",
        uid="web",
        controller=controller,
        replicas=replicas,
        **more,
    )
    return WorkloadState(made, count_replicas(replicas, [*pods, *others]))


def ready(*names: str) -> list[PodState]:
    return [PodState(name, name, ready=True) for name in names]


def budget(allowed: int, name: str = "web") -> Budget:
    return Budget(kind="PodDisruptionBudget", namespace="default", name=name, uid=f"budget-{name}", allowed=allowed)


def decided(
    *pending: Candidate, migrating: tuple[Migrating, ...] = (), state: WorkloadState | None = None, **about: Any
) -> Arbitration:
    """`budgets` of all pods of the test; the rest is configuration, or `config` is all of it."""
    budgets: tuple[Budget, ...] = about.pop("budgets", ())
    config: JobsConfig = about.pop("config", None) or JobsConfig(**about)
    uids = [*(one.pod.uid for one in pending if one.pod is not None), *(one.uid for one in migrating)]
    return arbitrate(
        ArbitrationSnapshot(
            config=config,
            pending=pending,
            migrating=migrating,
            workloads={WEB: state or workload()},
            budgets={uid: PodBudgets(budgets) for uid in uids},
        )
    )
