"""Owners and what they own: dependents of a vanished owner are collected, in the background, before their owner, or never.

Three ways, chosen by who deletes the owner: background (the owner goes, dependents follow), foreground (dependents first: the owner
waits, marked by a finalizer), orphan (dependents are let go of first, and stay).
"""

from __future__ import annotations

from typing import Any

from herder.server.engine import Engine
from herder.server.housekeeping.worker import Worker
from herder.server.metadata import FOREGROUND, ORPHAN, finalizers_of, set_finalizers
from herder.server.request import ENGINE
from herder.server.served import Served
from herder.server.status import ApiError
from herder.server.store import DELETED, Change, Record
from herder.server.store.records import Owner, key_of
from herder.server.verbs.writing import DeleteOptions, Preconditions, delete_one
from herder.server.writes import Intent

Document = dict[str, Any]
Place = tuple[str, str]
GARBAGE = Intent("garbage-collector", user=ENGINE)


class Garbage:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # By the owner's uid. In the order in which they came: nothing that happens here depends on the order of a set.
        self._dependents: dict[str, dict[Place, None]] = {}
        self.worker = Worker[Place]("garbage", self._reconcile)
        for table in engine.store.kinds():
            for record in engine.store.scan(table):
                self._know(table, record, None)
                if record.owners or record.terminating:
                    self.worker.add((table, record.key))
        engine.store.listen("", self._on_change)
        # Owners of a kind that was not served could not be judged; now perhaps they can.
        engine.registry.on_change(self._look_again)

    def _look_again(self) -> None:
        for places in list(self._dependents.values()):
            for place in places:
                self.worker.add(place)

    # --- who owns whom -----------------------------------------------------------------------------------------------------------

    def _know(self, table: str, record: Record | None, before: Record | None) -> None:
        place = (table, (record or before).key)  # type: ignore[union-attr]
        for owner in before.owners if before else ():
            places = self._dependents.get(owner.uid)
            if places is not None:
                places.pop(place, None)
                if not places:
                    del self._dependents[owner.uid]
        for owner in record.owners if record else ():
            self._dependents.setdefault(owner.uid, {})[place] = None

    def _on_change(self, change: Change) -> None:
        record, before = change.record, change.previous
        if change.kind == DELETED:
            self._know(change.table, None, before)
            for place in self._dependents.get(record.uid, ()):
                self.worker.add(place)
            # An owner may have waited for just this one.
            self._wake_owners(record)
            return
        if before is None or before.owners != record.owners:
            self._know(change.table, record, before)
            if record.owners:
                self.worker.add((change.table, record.key))
            if before is not None:
                self._wake_owners(before)
        if record.terminating:
            self.worker.add((change.table, record.key))

    def _wake_owners(self, record: Record) -> None:
        for owner in record.owners:
            found = self._find_owner(owner, record.namespace)
            if found is not None and found[1] is not None and found[1].terminating:
                self.worker.add((found[0].table, found[1].key))

    def _find_owner(self, owner: Owner, namespace: str) -> tuple[Served, Record | None] | None:
        """The owner's kind and, if it is there with that uid, the owner. None: it cannot be told, so nobody is collected for it."""
        group = owner.apiVersion.rsplit("/", 1)[0] if "/" in owner.apiVersion else ""
        served = self._engine.registry.by_kind(group, owner.kind)
        if served is None or (served.resource.namespaced and not namespace):
            return None
        key = key_of(namespace if served.resource.namespaced else "", owner.name)
        record = self._engine.store.latest(served.table, key)
        return served, record if record is not None and record.uid == owner.uid else None

    # --- what follows ------------------------------------------------------------------------------------------------------------

    async def _reconcile(self, place: Place) -> None:
        table, key = place
        record = self._engine.store.latest(table, key)
        served = self._engine.registry.by_table(table)
        if record is None or served is None:
            return
        if record.terminating:
            await self._finish_deletion(served, record)
        elif record.owners:
            await self._judge(served, record)

    async def _judge(self, served: Served, record: Record) -> None:
        """Keep it while one owner stands; let go of those that do not; collect it when none is left."""
        standing, waiting, gone = self._sort_owners(record)
        if standing:
            if waiting or gone:
                await self._let_go(served, record, {owner.uid for owner in (*waiting, *gone)})
        elif waiting:
            # Its owner waits for it. If it is itself waited on by others, they go first, too.
            await self._collect(served, record, "Foreground" if self._dependents.get(record.uid) else "Background")
        elif gone:
            await self._collect(served, record, _policy_of(record))

    def _sort_owners(self, record: Record) -> tuple[list[Owner], list[Owner], list[Owner]]:
        standing: list[Owner] = []
        waiting: list[Owner] = []
        gone: list[Owner] = []
        for owner in record.owners:
            found = self._find_owner(owner, record.namespace)
            if found is None:
                standing.append(owner)
            elif found[1] is None:
                gone.append(owner)
            elif found[1].terminating and FOREGROUND in finalizers_of(found[1].document()):
                waiting.append(owner)
            else:
                standing.append(owner)
        return standing, waiting, gone

    async def _finish_deletion(self, served: Served, record: Record) -> None:
        finalizers = finalizers_of(record.document())
        dependents = sorted(self._dependents.get(record.uid, ()))
        if ORPHAN in finalizers:
            for place in dependents:
                await self._orphan(place, record.uid)
            await self._drop_finalizer(served, record, ORPHAN)
        elif FOREGROUND in finalizers:
            for place in dependents:
                self.worker.add(place)
            if not any(self._blocks(place, record.uid) for place in dependents):
                await self._drop_finalizer(served, record, FOREGROUND)

    def _blocks(self, place: Place, uid: str) -> bool:
        dependent = self._engine.store.latest(*place)
        return dependent is not None and any(owner.uid == uid and owner.blockOwnerDeletion for owner in dependent.owners)

    async def _orphan(self, place: Place, uid: str) -> None:
        dependent = self._engine.store.latest(*place)
        served = self._engine.registry.by_table(place[0])
        if dependent is not None and served is not None:
            await self._let_go(served, dependent, {uid})

    async def _let_go(self, served: Served, record: Record, uids: set[str]) -> None:
        def without(document: Document) -> Document:
            metadata = document["metadata"]
            metadata["ownerReferences"] = [one for one in metadata.get("ownerReferences", ()) if one["uid"] not in uids]
            return document

        await _unless_gone(self._engine.writes.update(served, record.key, without, GARBAGE))

    async def _drop_finalizer(self, served: Served, record: Record, finalizer: str) -> None:
        def without(document: Document) -> Document:
            if document["metadata"]["uid"] != record.uid:
                return document  # another one of its name, by now
            set_finalizers(document, [one for one in finalizers_of(document) if one != finalizer])
            return document

        await _unless_gone(self._engine.writes.update(served, record.key, without, GARBAGE))

    async def _collect(self, served: Served, record: Record, policy: str) -> None:
        # Only this very object, as it was judged: one that got a new owner meanwhile is judged again.
        exactly = Preconditions(record.uid, str(record.revision))
        options = DeleteOptions(propagationPolicy=policy, preconditions=exactly)
        await _unless_gone(delete_one(self._engine, served, record.key, options))


def _policy_of(record: Record) -> str:
    finalizers = finalizers_of(record.document())
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"


async def _unless_gone(write: Any) -> None:
    try:
        await write
    except ApiError as error:
        if error.code != 404:
            raise
