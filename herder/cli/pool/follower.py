"""Follows the rollout of a pool until it is over, and a pool with all its machines without end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from herder.api.kinds import VirtualMachinePool
from herder.api.meta import Identified
from herder.cli.asking import Refusal
from herder.cli.following import LOOK_AGAIN, PASSING, Away, until
from herder.cli.pool.reading import members_of
from herder.cli.progress import Display, Row, State, reminding
from herder.kube.client import Client, Selection
from herder.kube.errors import Expired
from herder.kube.resources import INSTANCES, MACHINES, POOLS, Resource, key_of
from herder.rules.pools.explain import MachineRow, PoolReport, pool_report
from herder.rules.pools.waiting import rollout_standing

V = TypeVar("V", bound=Identified)
# What happens within this time is shown together.
TOGETHER = 0.25
STATES: dict[str, State] = {"going": "moves", "done": "ready", "held": "waits"}


class RolloutFollower:
    def __init__(self, client: Client, pool: VirtualMachinePool, shown: Display) -> None:
        self._client = client
        self._key, self._uid = key_of(pool), pool.uid
        self._generation = pool.metadata.generation or 0
        self._shown = shown
        self._away = Away()
        self.standing = rollout_standing(pool)

    async def run(self) -> None:
        """Raises what a person is to be told where it does not go on."""
        async with reminding(self._shown, self._why):
            await until(self._client, POOLS, self._key, self._is_over, self._away)

    def _is_over(self, pool: VirtualMachinePool | None) -> bool:
        if pool is None or pool.uid != self._uid:
            raise Refusal(f"pool {self._key.name} was deleted")
        if (pool.metadata.generation or 0) < self._generation:
            return False
        standing = self.standing = rollout_standing(pool)
        if standing.state == "held":
            raise Refusal(standing.text)
        done = standing.state == "done"
        self._shown.show([Row("", "done" if done else "moves", standing.text, None if done else standing.percent)])
        return done

    async def _why(self) -> str:
        return self._away.told or self.standing.text


class Watched(Generic[V]):
    """All objects of a kind in a namespace, kept up to date by a watch."""

    def __init__(self, client: Client, resource: Resource[V], namespace: str, changed: asyncio.Event) -> None:
        self._client = client
        self._resource = resource
        self._where = Selection(namespace)
        self._changed = changed
        self._away = Away()
        self._by_name: dict[str, V] = {}

    @property
    def items(self) -> list[V]:
        return list(self._by_name.values())

    def get(self, name: str) -> V | None:
        return self._by_name.get(name)

    @asynccontextmanager
    async def followed(self) -> AsyncGenerator[asyncio.Task[None]]:
        version = await self._list()
        task = asyncio.create_task(self._follow(version))
        try:
            yield task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, *PASSING):
                await task

    async def _list(self) -> str:
        listed = await self._client.list(self._resource, self._where)
        self._by_name = {one.name: one for one in listed.items}
        self._away.answered()
        self._changed.set()
        return listed.resource_version

    async def _follow(self, version: str) -> None:
        while True:
            try:
                async for event in self._client.watch(self._resource, version, self._where):
                    if event.type != "BOOKMARK":
                        self._take(event.type, self._resource.decode(event.object))
                version = await self._list()
            except (Expired, *PASSING) as error:
                self._away.silent(error)
                with contextlib.suppress(*PASSING):
                    version = await self._list()
            await asyncio.sleep(LOOK_AGAIN)

    def _take(self, kind: str, thing: V) -> None:
        if kind == "DELETED":
            self._by_name.pop(thing.name, None)
        else:
            self._by_name[thing.name] = thing
        self._changed.set()


class PoolFollower:
    """Shows a pool and each of its machines, and every change of them, until the pool is deleted."""

    def __init__(self, client: Client, pool: VirtualMachinePool, shown: Display) -> None:
        self._shown = shown
        self._name, self._uid = pool.name, pool.uid
        self._changed = asyncio.Event()
        here = pool.namespace
        self._pools = Watched(client, POOLS, here, self._changed)
        self._machines = Watched(client, MACHINES, here, self._changed)
        self._instances = Watched(client, INSTANCES, here, self._changed)
        self._gone: dict[str, Row] = {}

    async def run(self) -> None:
        async with self._pools.followed() as pools, self._machines.followed() as machines, self._instances.followed() as instances:
            tasks = (pools, machines, instances)
            while True:
                self._show()
                await self._news(tasks)

    async def _news(self, tasks: tuple[asyncio.Task[None], ...]) -> None:
        """Until something has changed; raises what has ended a watch for good."""
        self._changed.clear()
        waiting = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        for task in tasks:
            if task.done():
                task.result()
        await asyncio.sleep(TOGETHER)

    def _show(self) -> None:
        pool = self._pools.get(self._name)
        if pool is None or pool.uid != self._uid:
            raise Refusal(f"pool {self._name} was deleted")
        members = members_of(pool, self._machines.items, self._instances.items)
        by_name = {one.name: one for one in self._machines.items}
        self._shown.show(self.rows(pool_report(pool, by_name, members)))

    def rows(self, report: PoolReport) -> list[Row]:
        """The pool first, with a bar while its rollout goes on; then machines that are not as they should be, then the others."""
        machines = [_machine(row) for row in report.machines]
        here = {row.name for row in machines}
        for name in self._gone.keys() - here:
            self._gone[name] = Row(name, "ready", "is gone")
        before = [row for name, row in self._gone.items() if name not in here]
        self._gone = {row.name: row for row in machines}
        ordered = sorted(machines, key=lambda row: row.state == "ready")
        return [_pool(report), *ordered, *before]


def _pool(report: PoolReport) -> Row:
    counts = f"{report.ready} of {report.desired} ready, {report.updated} updated"
    percent = report.percent if report.rollout != "done" else None
    return Row(report.name, STATES[report.rollout], f"{counts}; {report.message}", percent)


def _machine(row: MachineRow) -> Row:
    ready = "ready" if row.ready else "not ready"
    where = f" on {row.node}" if row.node else ""
    said = f"{ready}{where}, revision {row.revision or '(none)'}" + (f": {row.why}" if row.why else "")
    return Row(row.name, "ready" if row.ready and row.updated else "moves" if row.ready else "waits", said)
