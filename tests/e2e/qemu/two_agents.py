"""Two agents with real QEMUs, as far as moving goes, and steps at which something may happen to either."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from herder.api.guest import ENDED
from herder.api.kinds.migration_state import PolicySettings
from herder.api.world import RealWorld
from herder.nodes.moving import DiskNotes, Mover, Switchboard
from herder.nodes.moving.link import Unreachable
from herder.nodes.moving.messages import Answer, Request
from herder.nodes.moving.notes import Coming, Leaving
from herder.nodes.moving.switchboard import Go
from herder.nodes.runtimes.base import Order
from herder.nodes.runtimes.qemu import QemuRuntime, RunAs
from herder.nodes.runtimes.qemu.facts import Facts

DOWN_FOR = 0.05


class Steps:
    """Each has a number, in the order in which they are reached. At one of them it happens."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self._number = -1
        self._happening: Callable[[], None] = lambda: None

    def at(self, number: int, happening: Callable[[], None]) -> None:
        self._number, self._happening = number, happening

    def reach(self, name: str, agent: Agent | None = None) -> None:
        """Whoever dies here goes no further."""
        life = agent.life if agent is not None else 0
        self.reached.append(name)
        if len(self.reached) == self._number + 1:
            self._happening()
        if agent is not None and agent.life != life:
            raise asyncio.CancelledError(f"{agent.name} is dead")


class Agent:
    def __init__(self, name: str, folder: Path, facts: Facts, run_as: RunAs | None, board: Switchboard, steps: Steps) -> None:
        self.name = name
        self.folder = folder / name
        self.life = 0
        self.up = asyncio.Event()
        self.steps = steps
        self._about = facts, run_as
        self._board = board
        self._tasks: set[asyncio.Task[None]] = set()
        self.runtime: SteppedRuntime
        self.mover: Mover

    async def open(self) -> None:
        self.runtime = SteppedRuntime(self, *self._about)
        notes = SteppedNotes(self, DiskNotes(self.folder / "moves"))
        self.mover = mover = Mover(self.name, self.runtime, notes, self._board.link(self.name), RealWorld())
        await self.runtime.open(lambda guest: self._told(mover, guest))
        await mover.open(lambda guest: None)
        self.up.set()

    def _told(self, mover: Mover, guest: str) -> None:
        moved = self.runtime.moved(guest)
        if self.up.is_set() and moved is not None and moved.state == "Completed":
            self.steps.reach(f"{self.name} has given it away", self)
        mover.told(guest)

    def crash(self) -> None:
        """At once it neither hears nor does anything; its QEMUs live on, and so does what is on its disk. Then it is back."""
        self.life += 1
        self.up.clear()
        self._board.unplug(self.name)
        task = asyncio.create_task(self._come_back())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _come_back(self) -> None:
        await self.close()
        await asyncio.sleep(DOWN_FOR)
        await self.open()

    async def close(self) -> None:
        await self.mover.close()
        await self.runtime.close()

    def kill(self, guest: str) -> None:
        """Its QEMU, if it is still there."""
        found = self.runtime._guests.get(guest)  # pyright: ignore[reportPrivateUsage]
        if found is not None and found.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.process.pid, signal.SIGKILL)

    def has_ended(self, guest: str) -> bool:
        status = self.runtime.status(guest)
        return status is None or status.state in ENDED


class SteppedRuntime(QemuRuntime):
    def __init__(self, agent: Agent, facts: Facts, run_as: RunAs | None) -> None:
        super().__init__(agent.folder, RealWorld(), facts, run_as)
        self._agent = agent

    async def prepare_incoming(self, order: Order, migration: str, settings: PolicySettings | None = None) -> str:
        self._reach("is about to prepare")
        address = await super().prepare_incoming(order, migration, settings)
        self._reach("has prepared")
        return address

    async def migrate_out(self, guest: str, migration: str, address: str, settings: PolicySettings) -> None:
        self._reach("is about to send")
        await super().migrate_out(guest, migration, address, settings)
        self._reach("sends")

    async def resume(self, guest: str) -> None:
        self._reach("is about to resume")
        await super().resume(guest)
        self._reach("has resumed")

    def _reach(self, what: str) -> None:
        self._agent.steps.reach(f"{self._agent.name} {what}", self._agent)


class SteppedNotes:
    def __init__(self, agent: Agent, notes: DiskNotes) -> None:
        self._agent, self._notes = agent, notes
        self.leaving, self.coming, self.unreadable, self.remove = notes.leaving, notes.coming, notes.unreadable, notes.remove

    async def write(self, guest: str, note: Leaving | Coming) -> None:
        what = f"{self._agent.name} note {note.outcome or 'Leaving' if isinstance(note, Leaving) else note.granted}"
        self._agent.steps.reach(f"{what} to be written", self._agent)
        await self._notes.write(guest, note)
        self._agent.steps.reach(f"{what} written", self._agent)


def between(agents: dict[str, Agent], steps: Steps) -> Callable[[str, str, Request, Go], Any]:
    """The line between the two."""

    async def travel(source: str, target: str, request: Request, go: Go) -> Answer:
        asks, answers = agents[source], agents[target]
        steps.reach(f"{source} asks {type(request).__name__}", asks)
        life = answers.life
        try:
            answer = await go()
            steps.reach(f"{target} answers {type(answer).__name__}", answers)
        except asyncio.CancelledError:
            if answers.life == life:
                raise
            raise Unreachable(f"{target} is dead") from None
        steps.reach(f"{source} hears {type(answer).__name__}", asks)
        return answer

    return travel
