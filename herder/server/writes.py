"""Create, update and delete, once for every way in: verbs, patches, and the engine's own housekeeping.

Each decision is taken without a pause, from reading the newest state to handing the new one to the writer. So no two writers can
decide on the same state, and nothing needs to be retried.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from herder.api.problems import Problem
from herder.api.world import World, timestamp
from herder.server import status
from herder.server.admission import check_claim_growth
from herder.server.advising import advice_for
from herder.server.events import EVENTS, EventLimits
from herder.server.fields import entries_before, managed_fields_after_create, managed_fields_after_update
from herder.server.metadata import (
    begin_life,
    carry_over,
    finalizers_of,
    generate_name,
    is_terminating,
    metadata_of,
    ordered,
    same_but_for_version,
)
from herder.server.partial import read_partly
from herder.server.renewals import LEASES, Renewal
from herder.server.request import ANONYMOUS, ENGINE, User
from herder.server.served import Served
from herder.server.store import Record, StorageFullError, Store, StoreStopped
from herder.server.store.records import key_of
from herder.server.templates import Template
from herder.server.validation import check_update

Document = dict[str, Any]
# etcd refuses what is larger, and so do we.
OBJECT_LIMIT = 1536 * 1024
GENERATE_ATTEMPTS = 8


class Intent(msgspec.Struct, frozen=True):
    """Who writes, and how."""

    manager: str = "herder"
    dry_run: bool = False
    subresource: str = ""
    # The types of what was sent are known to be right, so that they need not be looked at again.
    typed: bool = False
    # By server-side apply: who manages what is decided already, and comes with the object.
    applied: bool = False
    # By a patch that reaches only metadata and status, of a kind that can be written so: nothing else is read.
    partial: bool = False
    # Nobody, unless it is said: then nothing can be given away by mistake.
    user: User = ANONYMOUS


HOUSEKEEPING = Intent(user=ENGINE)
# Refuses what the user may not make of an object (new, old, who).
Guard = Callable[[Served, Document, Document | None, User], None]
# The same for what is known of a request besides: of which subresource the object was sent.
Restriction = Callable[[Served, Document, Document | None, User, str], None]
# What is wrong with an object that has no fault of its own, because of others that are there (new, old, who).
Among = Callable[[Served, Document, Document | None, User], list[Problem]]
# What is accepted, and because of others probably not meant (new, old).
AdviceAmong = Callable[[Served, Document, Document | None], list[str]]


class Outcome(msgspec.Struct):
    """The object as it is after the write; `removed` when that was the end of it."""

    raw: bytes
    created: bool = False
    removed: bool = False
    # What the client should hear beside it.
    advice: list[str] = []


class Writes:
    def __init__(
        self, store: Store, world: World, guard: Guard, restrict: Restriction, among: Among, advice_among: AdviceAmong
    ) -> None:
        self.store = store
        self.world = world
        self.event_limits = EventLimits(world.now)
        self._guard = guard
        self._restrict = restrict
        self._among = among
        self._advice_among = advice_among

    # --- create ------------------------------------------------------------------------------------------------------------------

    async def create(
        self,
        served: Served,
        obj: Document,
        intent: Intent,
        given: Document | None = None,
        entries: list[Document] | None = None,
        template: Template | None = None,
    ) -> Outcome:
        """`given`: what admission adds to the spec, which belongs to no field manager. `entries`: who manages what, if decided.
        `template`: what is known of the spec, which the object then comes without."""
        metadata = metadata_of(obj)
        versioned = bool(metadata.get("resourceVersion"))
        begin_life(obj, self.world)
        self._name(served, metadata)
        self._restrict(served, obj, None, intent.user, intent.subresource)
        if template is None:
            entries = self._judge(served, obj, intent, entries)
            await self._stand_beside(served, obj, None, intent.user)
        else:
            entries = self._judge_rest(served, obj, intent, template)
        if versioned:
            raise status.ApiError(500, "", "resourceVersion should not be set on objects to be created")
        key = key_of(metadata.get("namespace", ""), metadata["name"])
        if (existing := self.store.latest(served.table, key)) is not None:
            await self.settled(served, key)
            raise status.already_exists(served.resource, metadata["name"], existing.terminating)
        if entries:
            metadata["managedFields"] = entries
        advice = self._advice(served, obj, None)
        if template is not None:
            advice += template.advice
            obj.update(spec=template.with_given(given or {}), status=obj.pop("status"))  # in the usual order
        elif given:
            obj["spec"].update(given)
        outcome = await self._write(served, key, obj, None, intent)
        outcome.advice = advice
        return outcome

    def _judge(self, served: Served, obj: Document, intent: Intent, entries: list[Document] | None) -> list[Document]:
        """Makes it what is stored, or refuses it. Returns who manages what."""
        served.strategy.default(obj)
        self._guard(served, obj, None, intent.user)
        # Before the server adds anything of its own: the manager owns what it sent, and the defaults that follow from it.
        if entries is None:
            entries = self._entries_of_new(served, obj, intent)
        served.strategy.prepare_create(obj)
        self._refuse(served, obj, served.strategy.validate_create(obj, intent.typed))
        return entries

    def _judge_rest(self, served: Served, obj: Document, intent: Intent, template: Template) -> list[Document]:
        """The same for one whose spec has been judged before."""
        self._guard(served, obj, None, intent.user)
        entries = self._entries_of_new(served, obj, intent, {"f:spec": template.fields})
        served.strategy.prepare_create(obj)
        obj["status"]["qosClass"] = template.quality
        self._refuse(served, obj, served.strategy.validate_metadata(obj))
        return entries

    def _entries_of_new(self, served: Served, obj: Document, intent: Intent, known: Document | None = None) -> list[Document]:
        created = obj["metadata"]["creationTimestamp"]
        return managed_fields_after_create(
            *(obj, served.fields, intent.manager, created), reset=served.reset(""), encoded=True, known=known
        )

    def _refuse(self, served: Served, obj: Document, problems: list[Problem]) -> None:
        if problems:
            raise status.invalid(served.spoken_of, obj["metadata"].get("name", ""), problems)

    async def _stand_beside(self, served: Served, obj: Document, old: Document | None, user: User) -> None:
        """Refuses what others stand in the way of. Waits only for a refusal: until what it rests on is durable."""
        problems = self._among(served, obj, old, user)
        if problems:
            try:
                await self.store.all_settled(served.table)
            except (StorageFullError, StoreStopped) as error:
                raise _not_stored(error) from None
            self._refuse(served, obj, problems)

    def _advice(self, served: Served, obj: Document, old: Document | None) -> list[str]:
        advice = advice_for(served.resource, obj, old)
        # Pods and the like are about nobody else, and there are many of them.
        return advice if served.resource.builtin else advice + self._advice_among(served, obj, old)

    def _name(self, served: Served, metadata: Document) -> None:
        if metadata.get("name") or not metadata.get("generateName"):
            return
        for _ in range(GENERATE_ATTEMPTS):
            generate_name(metadata, self.world)
            if self.store.latest(served.table, key_of(metadata.get("namespace", ""), metadata["name"])) is None:
                return

    # --- update ------------------------------------------------------------------------------------------------------------------

    async def update(self, served: Served, key: str, make: Callable[[Document], Document], intent: Intent) -> Outcome:
        """`make` gets a copy of the stored object, which it may change, and returns what it should become."""
        current = self.store.latest(served.table, key)
        try:
            if current is None:
                raise status.not_found(served.resource, key.rsplit("/", 1)[-1])
            old, new = self._twice(served, current, intent)
            new = make(new)
            check_update(served, new, old)
        except status.ApiError as error:
            if error.code in (404, 409):
                await self.settled(served, key)
            raise
        # Before what the subresource cannot change is put back: trying is refused, too.
        self._restrict(served, new, old, intent.user, intent.subresource)
        applied = new["metadata"].pop("managedFields", None) if intent.applied else None
        self._prepare_update(served, new, old, intent)
        self._guard(served, new, old, intent.user)
        problems = served.strategy.validate_update(new, old, intent.typed)
        if problems:
            raise status.invalid(served.spoken_of, current.name, problems)
        if not intent.subresource:
            check_claim_growth(self.store, served, new, old)
            await self._stand_beside(served, new, old, intent.user)
        if intent.applied:
            _set_managers(new, applied)
        if is_terminating(new) and not served.strategy.holds(new) and not _grace_of(new):
            return await self._remove(served, key, new, current, intent)
        if same_but_for_version(new, old) and _same_managers(new, old, intent):
            await self.settled(served, key)
            return Outcome(current.raw)
        if not intent.applied:
            self._manage(served, new, old, intent)
        advice = self._advice(served, new, old) if not intent.subresource else []
        outcome = await self._write(served, key, new, current, intent)
        outcome.advice = advice
        return outcome

    async def renew(self, renewal: Renewal, time: bytes) -> Outcome:
        """An update that is known to change nothing but the time of a Lease."""
        current = renewal.record
        now = timestamp(self.world.now()).encode()
        record = renewal.again(self.store.reserve(), time, now)
        await self._stored(LEASES, record, current)
        return Outcome(record.raw)

    async def settled(self, served: Served, key: str) -> None:
        """What an answer rests on must be durable: a refusal because of a write that is then lost would be a lie."""
        try:
            await self.store.settled(served.table, key)
        except (StorageFullError, StoreStopped) as error:
            raise _not_stored(error) from None

    async def amend(self, served: Served, key: str, make: Callable[[Document], Document], dry_run: bool) -> Outcome:
        """A change that the engine itself makes because of an order (a binding, an eviction): the object's own rules are not asked,
        its generation stays, and nobody is recorded as the manager of what changed."""
        current = self.store.latest(served.table, key)
        if current is None:
            raise status.not_found(served.resource, key.rsplit("/", 1)[-1])
        new = make(self._read(served, current))
        if same_but_for_version(new, self._read(served, current)):
            await self.store.settled(served.table, key)
            return Outcome(current.raw)
        return await self._write(served, key, new, current, Intent(dry_run=dry_run))

    def _prepare_update(self, served: Served, new: Document, old: Document, intent: Intent) -> None:
        carry_over(new, old)
        strategy = served.strategy
        if intent.subresource == "status":
            if not intent.partial:
                strategy.default_status(new)
            strategy.prepare_status(new, old)
            return
        strategy.default(new)
        if intent.subresource == "finalize":
            strategy.prepare_finalize(new, old)
        else:
            strategy.prepare_update(new, old)

    def _manage(self, served: Served, new: Document, old: Document, intent: Intent) -> None:
        entries = managed_fields_after_update(
            *(old, new, served.fields, intent.manager, timestamp(self.world.now())),
            subresource=intent.subresource,
            reset=served.reset(intent.subresource),
            encoded=True,
        )
        _set_managers(new, entries)

    def _twice(self, served: Served, record: Record, intent: Intent) -> tuple[Document, Document]:
        """The stored object, and a copy to be changed."""
        if intent.partial:
            return read_partly(record.raw)
        return self._read(served, record), self._read(served, record)

    def _read(self, served: Served, record: Record) -> Document:
        return served.from_stored(record.document())

    # --- delete ------------------------------------------------------------------------------------------------------------------

    async def mark_deleted(
        self, served: Served, key: str, old: Document, current: Record, grace: int, finalizers: list[str], intent: Intent
    ) -> Outcome:
        """The object stays, as deleted, until its finalizers and its grace have run out; without either it goes now."""
        new = self._read(served, current)
        metadata = new["metadata"]
        metadata["finalizers"] = finalizers
        if not finalizers:
            del metadata["finalizers"]
        served.strategy.begin_deletion(new)
        if not served.strategy.holds(new) and not grace:
            if served.strategy.graceful:
                self._set_deletion(served, metadata, old, 0)
            return await self._remove(served, key, new, current, intent)
        if is_terminating(old) and _grace_of(old) <= grace and finalizers == finalizers_of(old):
            await self.settled(served, key)
            return Outcome(current.raw)
        self._set_deletion(served, metadata, old, grace)
        return await self._write(served, key, new, current, intent)

    def _set_deletion(self, served: Served, metadata: Document, old: Document, grace: int) -> None:
        if is_terminating(old):
            # Asking again can only make it sooner.
            grace = min(grace, _grace_of(old))
            asked_at = _seconds(old["metadata"]["deletionTimestamp"]) - _grace_of(old)
            metadata["deletionTimestamp"] = timestamp(asked_at + grace)
        else:
            metadata["deletionTimestamp"] = timestamp(self.world.now() + grace)
            if served.strategy.has_generation:
                metadata["generation"] = metadata.get("generation", 0) + 1
        metadata["deletionGracePeriodSeconds"] = grace

    async def expire(self, served: Served, record: Record) -> None:
        """The end of an object whose time is up, unless it has changed since it was looked at. Nothing holds it."""
        current = self.store.latest(served.table, record.key)
        if current is not None and current.revision == record.revision:
            await self._remove(served, record.key, self._read(served, current), current, HOUSEKEEPING)

    async def _remove(self, served: Served, key: str, obj: Document, current: Record, intent: Intent) -> Outcome:
        return await self._write(served, key, obj, current, intent, removed=True)

    # --- the write itself --------------------------------------------------------------------------------------------------------

    async def _write(
        self, served: Served, key: str, obj: Document, current: Record | None, intent: Intent, *, removed: bool = False
    ) -> Outcome:
        obj = served.to_stored(obj)
        if served.table == EVENTS and not removed and not intent.dry_run:
            self.event_limits.admit(obj)
        if intent.dry_run:
            if current is not None:
                obj["metadata"]["resourceVersion"] = str(current.revision)
            return Outcome(msgspec.json.encode(ordered(obj)), current is None, removed)
        revision = self.store.reserve()
        obj["metadata"]["resourceVersion"] = str(revision)
        raw = msgspec.json.encode(ordered(obj))
        if len(raw) > OBJECT_LIMIT:
            raise too_large_object(served, obj)
        await self._stored(served.table, Record(key, revision, raw), current, removed=removed)
        return Outcome(raw, current is None, removed)

    async def _stored(self, table: str, record: Record, current: Record | None, *, removed: bool = False) -> None:
        try:
            if removed:
                assert current is not None
                written = self.store.remove(table, record, current)
            else:
                written = self.store.put(table, record, current)
            # A client that hangs up meanwhile does not take the write back.
            await written
        except (StorageFullError, StoreStopped) as error:
            raise _not_stored(error) from None


def _not_stored(error: StorageFullError | StoreStopped) -> status.ApiError:
    if isinstance(error, StorageFullError):
        return status.internal(str(error))
    return status.unavailable(f"the store has stopped: {error}")


def too_large_object(served: Served, obj: Document) -> status.ApiError:
    name = obj["metadata"]["name"]
    message = f"{served.resource.qualified} {name!r} is too large: an object may take {OBJECT_LIMIT} bytes"
    return status.ApiError(413, "RequestEntityTooLarge", message)


def _same_managers(new: Document, old: Document, intent: Intent) -> bool:
    """A write may change nothing but who holds what. That an apply was repeated is not worth a new time."""
    before = old["metadata"].get("managedFields") or []
    if not intent.applied:
        return entries_before(old, new, intent.subresource) == before
    after = new["metadata"].get("managedFields") or []
    return [_but_for_time(entry) for entry in before] == [_but_for_time(entry) for entry in after]


def _but_for_time(entry: Document) -> Document:
    return {field: value for field, value in entry.items() if field != "time"}


def _set_managers(obj: Document, entries: list[Document] | None) -> None:
    obj["metadata"].pop("managedFields", None)
    if entries:
        obj["metadata"]["managedFields"] = entries


def _grace_of(obj: Document) -> int:
    return obj["metadata"].get("deletionGracePeriodSeconds") or 0


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
