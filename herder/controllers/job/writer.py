"""Carries out what a look at a job leads to, in the order of the plan's fields. Each step is safe to repeat."""

from __future__ import annotations

from herder.api import labels, registry
from herder.api.kinds import PodMigrationJob
from herder.controllers.hands import Hands, InTheWay
from herder.controllers.job.evictor import Evictor
from herder.kube.cache import Stored
from herder.kube.client import STRATEGIC_PATCH
from herder.kube.errors import AlreadyExists, ApiStatusError, Conflict, Forbidden, Invalid, NotFound
from herder.kube.kit import Kit
from herder.kube.resources import JOBS, MIGRATIONS, PODS, RESERVATIONS, Key
from herder.rules.jobs.execution.plan import JobPlan
from herder.rules.jobs.execution.room import referred_to
from herder.rules.plans import Document

# Said by the server about what we wanted to make: the same again would be refused again.
REFUSALS = (Invalid, Forbidden, InTheWay)


class NotMade(Exception):
    """The reservation of a job was refused."""


class NotEvicted(Exception):
    """The server has answered that the pod, or its guest, stays where it is. Not what any other write of the plan was answered."""

    def __init__(self, error: ApiStatusError) -> None:
        super().__init__(str(error))
        self.error = error


class Writer:
    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._hands = Hands(kit.client, kit.recorder)
        self._jobs = kit.caches.of(JOBS)
        self._pods = kit.caches.of(PODS)
        self._reservations = kit.caches.of(RESERVATIONS)
        self._migrations = kit.caches.of(MIGRATIONS)
        self._evictor = Evictor(kit.client, self._pods)

    async def carry_out(self, stored: Stored[PodMigrationJob], plan: JobPlan) -> None:
        stored = await self._prepare(stored, plan)
        if plan.status is not None:
            await self.show(stored, plan)
        await self._move(stored, plan)
        await self._undo(stored, plan)
        if plan.let_go:
            await self._let_go(stored)
        if plan.delete is not None:
            await self._hands.delete(self._jobs, "", plan.delete)

    async def show(self, stored: Stored[PodMigrationJob], plan: JobPlan) -> None:
        if plan.status is None or self._hands.is_shown(stored, plan.status):
            return
        await self._hands.show(self._jobs, stored, plan.status, unchanged=True)
        self._hands.tell(stored.view, plan.events)

    async def _prepare(self, stored: Stored[PodMigrationJob], plan: JobPlan) -> Stored[PodMigrationJob]:
        if plan.hold or plan.refer:
            stored = await self._hold(stored, plan)
        if plan.create_reservation is not None:
            try:
                await self._hands.create(self._reservations, plan.create_reservation, stored.uid)
            except REFUSALS as error:
                raise NotMade(str(error)) from error
        return stored

    async def _hold(self, stored: Stored[PodMigrationJob], plan: JobPlan) -> Stored[PodMigrationJob]:
        """Finalizer and reference in one write, and only over what was looked at."""
        patch: Document = {"metadata": {"resourceVersion": str(stored.version)}}
        held = labels.JOB_FINALIZER in stored.view.finalizers
        if plan.hold and not held:
            patch["metadata"]["finalizers"] = [*stored.view.finalizers, labels.JOB_FINALIZER]
        if plan.refer:
            patch["spec"] = {"reservationOptions": {"reservationRef": _reference(plan.refer)}}
        if held and not plan.refer:
            return stored
        await self._hands.patch(self._jobs, stored, patch)
        return self._jobs.stored(stored.key) or stored

    async def _move(self, stored: Stored[PodMigrationJob], plan: JobPlan) -> None:
        if plan.open_reservation:
            await self._open(Key("", referred_to(stored.view)))
        for name, uid, patch in plan.patch_pods:
            await self._patch_pod(Key(stored.view.spec.pod_ref.namespace, name), uid, patch)
        try:
            if plan.create_migration is not None:
                await self._migrate(plan.create_migration)
            if plan.evict is not None:
                await self._evictor.evict(plan.evict)
        except Conflict:
            # Somebody else was faster: it is looked at again.
            raise
        except ApiStatusError as error:
            raise NotEvicted(error) from error

    async def _open(self, key: Key) -> None:
        reservation = self._reservations.stored(key)
        if reservation is not None:
            await self._hands.patch(self._reservations, reservation, {"spec": {"unschedulable": False}})

    async def _patch_pod(self, key: Key, uid: str, patch: Document) -> None:
        """A strategic patch: owners are a list that others write, too."""
        wanted = {**patch, "metadata": {**patch.get("metadata", {}), "uid": uid}}
        try:
            made = await self._client.patch(PODS, key, wanted, content_type=STRATEGIC_PATCH)
        except NotFound:
            return
        await self._pods.wait_seen(made.metadata.resource_version or "")

    async def _migrate(self, document: Document) -> None:
        """Of this name there is one already: made by us, and not seen yet."""
        try:
            made = await self._client.create(MIGRATIONS, document)
        except AlreadyExists:
            return
        await self._migrations.wait_seen(made.metadata.resource_version or "")

    async def _undo(self, stored: Stored[PodMigrationJob], plan: JobPlan) -> None:
        namespace = stored.view.spec.pod_ref.namespace
        if plan.delete_migration is not None:
            await self._hands.delete(self._migrations, namespace, plan.delete_migration)
        if plan.delete_reservation is not None:
            await self._hands.delete(self._reservations, "", plan.delete_reservation)

    async def _let_go(self, stored: Stored[PodMigrationJob]) -> None:
        current = self._jobs.stored(stored.key)
        if current is not None and current.uid == stored.uid and labels.JOB_FINALIZER in current.view.finalizers:
            try:
                await self._hands.let_go(self._jobs, current, labels.JOB_FINALIZER)
            except NotFound:
                return


def _reference(name: str) -> Document:
    return {
        "apiVersion": f"{registry.RESERVATION.group}/{registry.RESERVATION.version}",
        "kind": registry.RESERVATION.kind,
        "name": name,
    }
