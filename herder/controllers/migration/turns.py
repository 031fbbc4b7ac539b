"""Whose turn it is, and who is called when a place is free. Nobody asks for it again and again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from herder.api.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.api.world import World
from herder.controllers.migration.looking import Looking
from herder.kube.cache import Change, Stored, view_of
from herder.kube.client import Client
from herder.kube.errors import ApiStatusError
from herder.kube.resources import MIGRATIONS, Key
from herder.rules.migration import Limits, Line
from herder.rules.migration.status import waiting
from herder.rules.plans import Document, plain

# Writes the status of a migration, and returns when it is seen.
Show = Callable[[Stored[VirtualMachineInstanceMigration], Document], Awaitable[None]]


class Turns:
    def __init__(self, client: Client, world: World, look: Looking, show: Show, call: Callable[[Key], None]) -> None:
        self._client = client
        self._world = world
        self._look = look
        self._show = show
        self._call = call
        self.line = Line(look.leaves)
        # Written, and no answer: whether they have begun is not known until the server is asked.
        self._doubtful: set[Key] = set()

    def subscribe(self) -> None:
        self._look.migrations.subscribe(self._migration_changed)
        self._look.instances.subscribe(self._instance_changed)
        self._look.settings.subscribe(self._call_next)

    @property
    def crowded(self) -> tuple[str, ...]:
        """Nodes that nobody more may come to now."""
        return self.line.full(self._limits())

    # What changes may make room.

    def _migration_changed(self, change: Change[VirtualMachineInstanceMigration]) -> None:
        # Of those in doubt only the server can say which of the two came first.
        if change.key not in self._doubtful:
            self._put(change.key, view_of(change.new))
        self._others_of(change.key.namespace, _instance_of(change.new or change.old))

    def _instance_changed(self, change: Change[VirtualMachineInstance]) -> None:
        self._others_of(change.key.namespace, change.key.name)

    def _others_of(self, namespace: str, instance: str) -> None:
        """One that waits may be able to leave now, or no longer."""
        names = [_name(key) for key in self._look.keys_of_instance(namespace, instance)]
        before = [self.line.place(name) for name in names]
        for name in names:
            self.line.look_again(name)
        if [self.line.place(name) for name in names] != before:
            self._call_next()

    def _put(self, key: Key, migration: VirtualMachineInstanceMigration | None) -> None:
        before = self.line.place(_name(key))
        self.line.put(_name(key), migration)
        if self.line.place(_name(key)) != before:
            self._call_next()

    def _call_next(self) -> None:
        """There may be room now."""
        limits = self._limits()
        for name in (*self.line.next_up(limits), *self.line.at_the_door(limits)):
            self._call(Key(*name))

    def _limits(self) -> Limits:
        cluster = self._look.settings.of_migrations()
        return Limits(cluster.parallel_per_cluster, cluster.parallel_outbound_per_node, cluster.parallel_inbound_per_node)

    # One migration, when it might be its turn. Between the question and its answer nobody else is asked: it is counted at once.

    async def begin(self, stored: Stored[VirtualMachineInstanceMigration], begun: Document) -> None:
        why = self.line.why_waiting(_name(stored.key), begun["sourceNode"], self._limits())
        if why[0]:
            await self._show(stored, waiting(stored.view, *why, self._world.now()))
        else:
            await self._let_through(stored, begun)

    async def come_in(self, stored: Stored[VirtualMachineInstanceMigration], document: Document) -> None:
        limits, target = self._limits(), document["targetNode"]
        if self.line.may_come_in(target, limits):
            await self._let_through(stored, document)
            return
        reason, message = self.line.why_not_in(target, limits)
        await self._show(stored, document | _scheduled(document, reason, message))

    async def _let_through(self, stored: Stored[VirtualMachineInstanceMigration], document: Document) -> None:
        """Counted before it is written, and before anything is waited for: neither the next one nor an answer that is lost may make
        it one too many."""
        self._doubtful.add(stored.key)
        self.line.put(_name(stored.key), _as_shown(stored.view, document))
        try:
            await self._show(stored, document)
        except ApiStatusError:
            self._settle(stored.key)
            raise
        self._settle(stored.key)

    async def be_sure(self, key: Key) -> None:
        """Before anything else is decided about one whose answer was lost."""
        if key not in self._doubtful:
            return
        found = await self._client.find(MIGRATIONS, key)
        if found is not None:
            await self._look.migrations.wait_seen(found.metadata.resource_version or "")
        self._settle(key)

    def _settle(self, key: Key) -> None:
        self._doubtful.discard(key)
        self.line.put(_name(key), view_of(self._look.migrations.stored(key)))
        self._call_next()


def _name(key: Key) -> tuple[str, str]:
    return (key.namespace, key.name)


def _instance_of(stored: Stored[VirtualMachineInstanceMigration] | None) -> str:
    migration = view_of(stored)
    return migration.spec.vmi_name if migration is not None else ""


def _as_shown(migration: VirtualMachineInstanceMigration, status: Document) -> VirtualMachineInstanceMigration:
    known: dict[str, Any] = plain(migration) or {}
    return msgspec.convert({**known, "status": status}, type=type(migration))


def _scheduled(document: Document, reason: str, message: str) -> Document:
    """It has its place, and waits before the door."""
    reached = [one for one in document["phaseTransitionTimestamps"] if one["phase"] != "PreparingTarget"]
    return {"phase": "Scheduled", "reason": reason, "message": message, "phaseTransitionTimestamps": reached}
