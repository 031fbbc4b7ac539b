"""What holds a job for now. Each limit is asked before a job is admitted, and told when it is: a batch can never be more than one
job at a time could. One more is a class in a module here, and a line."""

from __future__ import annotations

from herder.rules.jobs.arbitration.limits.budget import DisruptionBudgets
from herder.rules.jobs.arbitration.limits.counts import GlobalLimit, NamespaceLimit, NodeLimit
from herder.rules.jobs.arbitration.limits.limit import Limit, Wait
from herder.rules.jobs.arbitration.limits.workload import RolloutLimit, UnavailableLimit, WorkloadLimit
from herder.rules.jobs.arbitration.snapshot import ArbitrationSnapshot

LIMITS: tuple[type[Limit], ...] = (
    RolloutLimit,
    GlobalLimit,
    NodeLimit,
    NamespaceLimit,
    WorkloadLimit,
    DisruptionBudgets,
    UnavailableLimit,
)

__all__ = ["LIMITS", "Limit", "Wait", "limits_of"]


def limits_of(snapshot: ArbitrationSnapshot) -> list[Limit]:
    """With everything counted that migrates already."""
    limits = [kind(snapshot) for kind in LIMITS]
    for one in snapshot.migrating:
        for limit in limits:
            limit.count(one)
    return limits
