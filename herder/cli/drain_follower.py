"""Follows a node that is being drained: a row for each guest, until all have left or those that are left cannot."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.api.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.api.kinds.migration_state import MigrationProgress
from herder.cli.following import LOOK_AGAIN, PASSING, Away
from herder.cli.migration_follower import row_of
from herder.cli.progress import Display, Row, State, reminding
from herder.kube.client import Client, Selection
from herder.kube.errors import Forbidden, KubeError
from herder.kube.resources import INSTANCES, MIGRATIONS, NODES, PODS, Key, key_of
from herder.rules.configuration import ClusterMigrationSettings
from herder.rules.drains import NOT_MADE_YET, standing_of
from herder.rules.evictions import FINISHED
from herder.rules.migration.phases import finished
from herder.rules.migration.shown import furthest, line
from herder.rules.migration.where import no_node_ever
from herder.rules.placement.gather import Everything, snapshot_of

LOOK_EVERY = 1.0
MOST_NAMED = 5
STATES: dict[str, State] = {"left": "done", "waits": "waits", "stays": "stays"}


class Moves:
    """The migrations of the cluster that are not over, kept up to date by a watch."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[Key, VirtualMachineInstanceMigration] = {}
        # By instance: the last one that was seen to end. Its instance may not show it yet.
        self.ended: dict[Key, VirtualMachineInstanceMigration] = {}

    @asynccontextmanager
    async def followed(self) -> AsyncGenerator[None]:
        version = await self._list()
        task = asyncio.create_task(self._follow(version))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def of(self, instance: Key) -> VirtualMachineInstanceMigration | None:
        found = (one for one in self._known.values() if Key(one.namespace, one.spec.vmi_name) == instance)
        return next(found, None)

    def named(self, uid: str) -> VirtualMachineInstanceMigration | None:
        return next((one for one in self._known.values() if one.uid == uid), None)

    async def _list(self) -> str:
        listed = await self._client.list(MIGRATIONS)
        self._known = {key_of(one): one for one in listed.items if not finished(one)}
        return listed.resource_version

    async def _follow(self, version: str) -> None:
        """Whether the server answers is noticed by who asks for the guests."""
        while True:
            try:
                async for event in self._client.watch(MIGRATIONS, version):
                    if event.type != "BOOKMARK":
                        self._take(event.type, msgspec.json.decode(event.object, type=VirtualMachineInstanceMigration))
                version = await self._list()
            except KubeError:
                with contextlib.suppress(KubeError):
                    version = await self._list()
            await asyncio.sleep(LOOK_AGAIN)

    def _take(self, kind: str, migration: VirtualMachineInstanceMigration) -> None:
        if kind == "DELETED" or finished(migration):
            self._known.pop(key_of(migration), None)
            self.ended[Key(migration.namespace, migration.spec.vmi_name)] = migration
        else:
            self._known[key_of(migration)] = migration


class NodeFollower:
    def __init__(
        self, client: Client, node: str, cluster: ClusterMigrationSettings, shown: Display, there: Iterable[Key] = ()
    ) -> None:
        """`there`: the guests that were on the node before it was marked."""
        self._client = client
        self._node = node
        self._cluster = cluster
        self._shown = shown
        self._moves = Moves(client)
        self._away = Away()
        self._progress: dict[str, MigrationProgress | None] = {}
        # Why no node can ever take it, of those that were there at the beginning.
        self._no_node: dict[Key, str] = {}
        self._rows: dict[Key, Row] = {key: Row(f"{key.namespace}/{key.name}", "waits", "") for key in there}

    async def until_settled(self) -> list[Row]:
        """All rows, once each guest has left or cannot."""
        async with self._moves.followed(), reminding(self._shown, self._why):
            await self._look_for_pinned()
            while True:
                try:
                    await self._look()
                    self._away.answered()
                    self._shown.show(self.rows)
                    if all(row.state in ("done", "stays") for row in self.rows):
                        return self.rows
                except PASSING as error:
                    self._away.silent(error)
                await asyncio.sleep(LOOK_EVERY)

    @property
    def rows(self) -> list[Row]:
        return [self._rows[key] for key in sorted(self._rows)]

    @property
    def left_over(self) -> list[Row]:
        return [row for row in self.rows if row.state != "done"]

    async def _look_for_pinned(self) -> None:
        """Once: later their instances say so."""
        try:
            nodes = (await self._client.list(NODES)).items
        except Forbidden:
            return
        snapshot = snapshot_of(Everything(nodes, ()))
        for instance in await guests_on(self._client, self._node):
            written = msgspec.json.decode(await self._client.get_raw(INSTANCES, key_of(instance)))
            found = no_node_ever(instance, written, None, snapshot, lambda: nodes)
            if found is not None:
                self._no_node[key_of(instance)] = f"no node can take it: {found.reason}: {found.message}"

    async def _look(self) -> None:
        here: dict[Key, VirtualMachineInstance | None] = {key_of(one): one for one in await guests_on(self._client, self._node)}
        coming = await self._not_yet_here(here)
        gone = [key for key, row in self._rows.items() if row.state != "done" and key not in here and key not in coming]
        for key in gone:
            here[key] = await self._client.find(INSTANCES, key)
        for key, instance in here.items():
            self._rows[key] = self._row(key, instance)
        for key, (instance, migration) in coming.items():
            self._rows[key] = self._row(key, instance, migration)

    def _row(self, key: Key, instance: VirtualMachineInstance | None, coming: str = "") -> Row:
        name = f"{key.namespace}/{key.name}"
        migration = self._moves.of(key)
        on_node = instance is not None and instance.status is not None and instance.status.node_name == self._node
        if migration is not None and on_node:
            progress = self._progress[migration.uid] = furthest(migration, self._progress.get(migration.uid))
            return row_of(migration, progress, name)
        no_node, ended = self._no_node.get(key, ""), self._moves.ended.get(key)
        stands = standing_of(instance, self._node, self._cluster.eviction_strategy, no_node, coming)
        if stands.why == NOT_MADE_YET and ended is not None:
            return Row(name, "moves", line(ended, None))
        return Row(name, STATES[stands.state], stands.why)

    async def _not_yet_here(self, here: dict[Key, VirtualMachineInstance | None]) -> dict[Key, tuple[VirtualMachineInstance, str]]:
        """Guests that have a pod on the node and do not run there yet: those that start, and those that a migration brings."""
        found: dict[Key, tuple[VirtualMachineInstance, str]] = {}
        for pod in await self._launchers():
            owner = next((one for one in pod.metadata.owner_references or () if one.controller), None)
            key = Key(pod.namespace, owner.name) if owner is not None and owner.kind == INSTANCES.kind else None
            if key is None or key in here or (instance := await self._client.find(INSTANCES, key)) is None:
                continue
            migration = self._moves.named(pod.labels.get(labels.MIGRATION_UID, ""))
            elsewhere = instance.status is not None and instance.status.node_name not in (None, "", self._node)
            if migration is not None and elsewhere:
                found[key] = (instance, migration.name)
            elif not elsewhere:
                found[key] = (instance, "")
        return found

    async def _launchers(self) -> list[Pod]:
        only = Selection(labels=f"{labels.APP}={labels.LAUNCHER}", fields=f"spec.nodeName={self._node}")
        try:
            listed = (await self._client.list(PODS, only)).items
        except Forbidden:
            return []
        return [pod for pod in listed if pod.status.phase not in FINISHED and not pod.being_deleted]

    async def _why(self) -> str:
        if self._away.told:
            return self._away.told
        left = [row for row in self.left_over if row.state != "stays"]
        named = "; ".join(f"{row.name}: {row.text}" for row in left[:MOST_NAMED])
        more = f"; and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
        return f"{len(left)} of {len(self._rows)} guests are still to leave {self._node}: {named}{more}"


async def guests_on(client: Client, node: str) -> list[VirtualMachineInstance]:
    listed = (await client.list(INSTANCES, Selection(labels=f"{labels.NODE_NAME}={node}"))).items
    running = [one for one in listed if one.status is not None and one.status.phase == "Running"]
    return [one for one in running if one.status is not None and one.status.node_name == node]
