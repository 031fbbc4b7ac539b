"""Owners and what they own: dependents of a vanished owner are collected, in the background, before their owner, or never.

Three ways, chosen by who deletes the owner: background (the owner goes, dependents follow), foreground (dependents first: the owner
waits, marked by a finalizer), orphan (dependents are let go of first, and stay).

Owners in a circle would wait for each other in the foreground: one of them then no longer holds up its owners, and all of them go.
"""

from __future__ import annotations

from collections.abc import Iterator
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
# How many references are followed in search of a circle. Where there are more, we guess as Kubernetes always does: it is one.
MOST_FOLLOWED = 10_000


class Garbage:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # By the owner's uid, and whether it blocks the owner's deletion. In the order in which they came: nothing that happens here
        # depends on the order of a set.
        self._dependents: dict[str, dict[Place, bool]] = {}
        # Owners that were seen to go, while something names them: their kind may be gone as well when its turn comes.
        self._absent: set[str] = set()
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
                    self._absent.discard(owner.uid)
        for owner in record.owners if record else ():
            places = self._dependents.setdefault(owner.uid, {})
            places[place] = places.get(place, False) or bool(owner.blockOwnerDeletion)

    def _on_change(self, change: Change) -> None:
        record, before = change.record, change.previous
        if change.kind == DELETED:
            self._know(change.table, None, before)
            for place in self._dependents.get(record.uid, ()):
                self._absent.add(record.uid)
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
        if record.terminating and (before is None or _ends_otherwise(record, before)):
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
            if owner.uid in self._absent:
                gone.append(owner)
                continue
            found = self._find_owner(owner, record.namespace)
            if found is None:
                standing.append(owner)
            elif found[1] is None:
                gone.append(owner)
            elif _waits(found[1]):
                waiting.append(owner)
            else:
                standing.append(owner)
        return standing, waiting, gone

    async def _finish_deletion(self, served: Served, record: Record) -> None:
        dependents = sorted(self._dependents.get(record.uid, ()))
        if ORPHAN in record.finalizers:
            for place in dependents:
                await self._orphan(place, record.uid)
            await self._drop_finalizer(served, record, ORPHAN)
        elif FOREGROUND in record.finalizers:
            for place in dependents:
                self.worker.add(place)
            blocking = [found for place in dependents if (found := self._blocking(place, record)) is not None]
            if not blocking:
                await self._drop_finalizer(served, record, FOREGROUND)
            elif all(_waits(one) for one in blocking) and self._is_in_circle(record):
                await self._unblock(served, record)

    def _blocking(self, place: Place, owner: Record) -> Record | None:
        """A reference from another namespace means nobody here, whatever uid it names."""
        dependent = self._engine.store.latest(*place)
        if dependent is None or not self._dependents.get(owner.uid, {}).get(place):
            return None
        return dependent if owner.namespace in ("", dependent.namespace) else None

    def _is_in_circle(self, record: Record) -> bool:
        """Whether it holds up an owner that waits, which holds up another one, and so on to itself."""
        known, ahead, followed = {record.uid}, [record], 0
        while ahead:
            one = ahead.pop()
            followed += len(one.owners)
            if followed > MOST_FOLLOWED:
                return True
            for owner in self._waiting_owners(one):
                if owner.uid == record.uid:
                    return True
                if owner.uid not in known:
                    known.add(owner.uid)
                    ahead.append(owner)
        return False

    def _waiting_owners(self, record: Record) -> Iterator[Record]:
        """Those that it holds up."""
        for owner in record.owners:
            found = self._find_owner(owner, record.namespace) if owner.blockOwnerDeletion else None
            if found is not None and found[1] is not None and _waits(found[1]):
                yield found[1]

    async def _unblock(self, served: Served, record: Record) -> None:
        """It goes all the same, but its owners do not wait for it."""

        def unblocking(document: Document) -> Document:
            if document["metadata"]["uid"] == record.uid:
                for one in document["metadata"].get("ownerReferences", ()):
                    one["blockOwnerDeletion"] = False
            return document

        await _unless_gone(self._engine.writes.update(served, record.key, unblocking, GARBAGE))

    async def _orphan(self, place: Place, uid: str) -> None:
        dependent = self._engine.store.latest(*place)
        served = self._engine.registry.by_table(place[0])
        if dependent is not None and served is not None:
            await self._let_go(served, dependent, {uid})

    async def _let_go(self, served: Served, record: Record, uids: set[str]) -> None:
        def without(document: Document) -> Document:
            metadata = document["metadata"]
            if metadata["uid"] != record.uid:
                return document  # another one of its name, by now
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
        try:
            await _unless_gone(delete_one(self._engine, served, record.key, options))
        except ApiError as error:
            if error.code != 409:
                raise
            self.worker.add((served.table, record.key))


def _policy_of(record: Record) -> str:
    return "Orphan" if ORPHAN in record.finalizers else "Foreground" if FOREGROUND in record.finalizers else "Background"


def _waits(record: Record) -> bool:
    """For those that it owns to go first."""
    return record.terminating and FOREGROUND in record.finalizers


def _ends_otherwise(record: Record, before: Record) -> bool:
    return not before.terminating or before.finalizers != record.finalizers or before.owners != record.owners


async def _unless_gone(write: Any) -> None:
    try:
        await write
    except ApiError as error:
        if error.code != 404:
            raise
