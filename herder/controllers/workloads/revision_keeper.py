"""Keeps the templates that pods of a StatefulSet were made of, as ControllerRevisions."""

from __future__ import annotations

import msgspec

from herder.api import labels
from herder.api.core import StatefulSet
from herder.controllers.hands import Hands, InTheWay
from herder.controllers.workloads.claims import Claims
from herder.kube.cache import BY_OWNER, owned
from herder.kube.client import Selection
from herder.kube.errors import AlreadyExists, NotFound
from herder.kube.kit import Kit
from herder.kube.resources import CONTROLLER_REVISIONS, STATEFUL_SETS, Key
from herder.rules.plans import Document
from herder.rules.workloads.revisions import (
    Revision,
    RevisionPlan,
    current_revision,
    is_same_revision,
    plan_revision,
    revision_document,
    revision_of,
    to_forget,
)

# Those of pools are kept by others.
REVISIONS = Selection(labels=f"!{labels.POOL}")
# Two templates of one hash are rare; more than so many are somebody's doing.
MOST_TRIES = 8


class Revisions(msgspec.Struct, frozen=True, kw_only=True):
    known: tuple[Revision, ...]
    current: Revision
    update: Revision
    collisions: int


class RevisionKeeper:
    def __init__(self, kit: Kit, hands: Hands) -> None:
        self._client = kit.client
        self._hands = hands
        self._revisions = kit.caches.of(CONTROLLER_REVISIONS, REVISIONS)
        # None is let go of: its pods are of it, whatever labels somebody has put on it.
        self._claims = Claims(kit.client, STATEFUL_SETS, self._revisions, releases=False)

    async def of(self, one: StatefulSet, template: Document) -> Revisions | None:
        """With that of the template as it is now. None for a set that goes, and never had it."""
        await self._claims.of(one)
        known = self._known(one)
        plan = plan_revision(template, known)
        collisions = one.status.collision_count or 0
        update = plan.update
        if update is None and one.being_deleted:
            return None
        if update is None:
            update, collisions = await self._create(one, template, plan, collisions)
        elif plan.renumber and not one.being_deleted:
            update = await self._renumber(one, update, plan.number)
        # As they were before: what has just been made is no past.
        current = current_revision(one, known, update)
        return Revisions(known=tuple(known), current=current, update=update, collisions=collisions)

    async def forget(self, one: StatefulSet, revisions: Revisions, of_pods: set[str]) -> None:
        used = {revisions.current.name, revisions.update.name, *of_pods}
        for gone in to_forget(one, revisions.known, used):
            await self._hands.delete(self._revisions, one.namespace, gone)

    def _known(self, one: StatefulSet) -> list[Revision]:
        found = self._revisions.by(BY_OWNER, owned(one.namespace, one.uid))
        read = (revision_of(view) for view in found if view.controller_uid == one.uid)
        return [revision for revision in read if revision is not None]

    async def _create(self, one: StatefulSet, template: Document, plan: RevisionPlan, collisions: int) -> tuple[Revision, int]:
        """If something else has its name, the next try has another one."""
        for tried in range(collisions, collisions + MOST_TRIES):
            document = revision_document(one, template, plan.number, tried)
            try:
                made = await self._client.create(CONTROLLER_REVISIONS, document)
            except AlreadyExists:
                found = await self._client.find(CONTROLLER_REVISIONS, Key(one.namespace, document["metadata"]["name"]))
                if found is None or not is_same_revision(found, one, template):
                    continue
                # Made before, by us or by who led before us.
                made = found
            await self._revisions.wait_seen(made.metadata.resource_version or "")
            return Revision(name=made.name, template=template, number=made.revision, uid=made.uid), tried
        raise InTheWay(f"the names of {MOST_TRIES} ControllerRevisions for StatefulSet {one.name} are taken by others")

    async def _renumber(self, one: StatefulSet, revision: Revision, number: int) -> Revision:
        stored = self._revisions.stored(Key(one.namespace, revision.name))
        if stored is None:
            raise NotFound(404, "NotFound", f"ControllerRevision {revision.name} has gone meanwhile")
        await self._hands.patch(self._revisions, stored, {"revision": number})
        return msgspec.structs.replace(revision, number=number)
