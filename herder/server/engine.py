"""The embedded engine, without any way in: what it serves, what it stores, and who watches."""

from __future__ import annotations

from typing import Any

from herder.api.world import World
from herder.server import status
from herder.server.access.access import Access
from herder.server.access.tokens import Signer
from herder.server.admission import IMMORTAL_NAMESPACES
from herder.server.budgets import BudgetIndex
from herder.server.job_admission import JobAdmission
from herder.server.kubelets import Kubelets
from herder.server.others import Others
from herder.server.registry import Registry
from herder.server.renewals import Renewals
from herder.server.resource_metrics.samples import Samples
from herder.server.resources import Resource
from herder.server.served import Served
from herder.server.store import Store
from herder.server.templates import Templates
from herder.server.watching import Hub
from herder.server.writes import Writes


class Engine:
    def __init__(self, store: Store, world: World, signer: Signer | None = None) -> None:
        self.store = store
        self.world = world
        self.registry = Registry()
        self.access = Access(store, world, signer or Signer.make())
        others = Others(store, JobAdmission(store, self.access.allows).problems)
        self.writes = Writes(store, world, self.access.guard, self.access.restrict, others.problems, others.advice)
        self.templates = Templates()
        self.renewals = Renewals()
        self.hub = Hub(store)
        self.budgets = BudgetIndex(store)
        # The way to the nodes; none where nobody gave us a certificate to show them.
        self.kubelets: Kubelets | None = None
        # What they use; filled by whoever asks them.
        self.samples = Samples()

    @property
    def namespaces(self) -> Resource:
        return self.served("", "v1", "namespaces").resource

    def served(self, group: str, version: str, plural: str) -> Served:
        """One that is known to be there."""
        found = self.registry.find(group, version, plural)
        assert found is not None, (group, version, plural)
        return found

    def admit_delete(self, served: Served, document: dict[str, Any]) -> None:
        name = document["metadata"]["name"]
        if served.table == "namespaces" and name in IMMORTAL_NAMESPACES:
            raise status.forbidden(served.resource, name, "this namespace may not be deleted")
