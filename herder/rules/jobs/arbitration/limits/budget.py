"""Disruption budgets: what they allow now, less what was admitted and not evicted yet."""

from __future__ import annotations

from collections import Counter

from herder.api import reasons
from herder.rules.jobs.arbitration.limits.limit import Limit, Wait
from herder.rules.jobs.arbitration.snapshot import ArbitrationSnapshot, CandidatePod, Migrating
from herder.rules.jobs.budgets import claims, judge


class DisruptionBudgets(Limit):
    def __init__(self, snapshot: ArbitrationSnapshot) -> None:
        super().__init__(snapshot)
        # By the uid of a budget: pods that are to go, and that it still counts as healthy.
        self._claimed: Counter[str] = Counter()

    def count(self, migrating: Migrating) -> None:
        if not migrating.evicted:
            budgets = self.snapshot.budgets_of(migrating.uid).budgets
            self._claimed.update(claims(budgets, migrating.pod, ready=migrating.ready))

    def holds(self, pod: CandidatePod) -> Wait | None:
        found = self.snapshot.budgets_of(pod.uid)
        if found.problem:
            return Wait(reasons.WAITING_FOR_DISRUPTION_BUDGET, f"the budgets of the pod are not known: {found.problem}")
        refusal = judge(found.budgets, pod.name, ready=pod.ready, claimed=self._claimed)
        return Wait(reasons.WAITING_FOR_DISRUPTION_BUDGET, refusal.message) if refusal is not None else None
