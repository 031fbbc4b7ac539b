"""The API server as a machine: killed, it loses its memory and keeps its store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from herder.api.registry import KindInfo
from herder.server.running import Running
from herder.server.store import Change, Database, InlineWriter, Store
from herder.server.store.writer import Job
from tests.simulation.machine import Machine

# Written all the time, or only by the way: no sign that the world has not come to rest, and no part of what it came to.
PASSING = frozenset({"leases.coordination.k8s.io", "events"})


class Disk(Database):
    """Real SQLite, in memory; it outlives whoever closes it."""

    def __init__(self) -> None:
        super().__init__(Path(":memory:"))

    def close(self) -> None:
        pass


class MortalWriter(InlineWriter):
    """What a dead server still wants to write stays unwritten."""

    dead = False

    def submit(self, job: Job) -> None:
        if self.dead:
            job.done(ConnectionAbortedError("the server is dead"))
        else:
            super().submit(job)


class ApiServer:
    def __init__(self, kinds: Sequence[KindInfo]) -> None:
        self.disk = Disk()
        self.running: Running | None = None
        self.changed_at = 0.0
        # Every object that was made and that went, by kind and name.
        self.made: list[str] = []
        self.gone: list[str] = []
        # Told of every change that is stored, by whichever of its lives.
        self.listeners: list[Callable[[Change], None]] = []
        self._kinds = kinds
        self._writer: MortalWriter | None = None

    async def main(self, machine: Machine) -> None:
        machine.on_death = self._die
        self._writer = MortalWriter(self.disk)
        store = Store(self.disk, self._writer, lambda: self.disk)
        running = Running(store, machine.world, kinds=self._kinds)
        store.listen("", self._note)
        await running.start()
        self.running = running
        await asyncio.Event().wait()

    def _die(self) -> None:
        self.running = None
        if self._writer is not None:
            self._writer.dead = True

    def _note(self, change: Change) -> None:
        for listener in self.listeners:
            listener(change)
        if change.table in PASSING:
            return
        self.changed_at = asyncio.get_running_loop().time()
        if change.kind != "MODIFIED":
            (self.made if change.kind == "ADDED" else self.gone).append(f"{change.table} {change.record.key}")
