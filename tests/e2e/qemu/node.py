"""One node's runtime as an agent uses it, with words for what tests want of it."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from herder.api.guest import GuestDefinition, Started
from herder.api.world import RealWorld
from herder.nodes.runtimes.base import FileVolume, GuestStatus, Moved, Order, Volume
from herder.nodes.runtimes.qemu import QemuRuntime, RunAs, Wire
from herder.nodes.runtimes.qemu.facts import Facts
from tests.e2e.guest.machine import PATIENCE, Tick, ticks_of

Document = dict[str, Any]
Found = TypeVar("Found")


def order(
    guest: Path,
    settings: str = "rate=50",
    *,
    memory: str = "64Mi",
    domain: Document | None = None,
    spec: Document | None = None,
    volumes: dict[str, Volume] | None = None,
    incoming: Started | None = None,
    uid: str = "",
) -> Order:
    """The tiny guest, started as a kernel from a volume."""
    boot = {"volume": {"name": "kernel"}, "kernelArgs": settings}
    machine = {"memory": {"guest": memory}, "firmware": {"kernelBoot": boot}, "cpu": {"model": "qemu64"}, **(domain or {})}
    document = {
        "instance": {"namespace": "default", "name": "web", "uid": "11111111-2222"},
        "spec": {"domain": machine, **(spec or {})},
    }
    definition = msgspec.convert(document, GuestDefinition)
    if incoming is not None:
        definition = msgspec.structs.replace(definition, incoming=incoming)
    return Order(uid or str(uuid.uuid4()), definition, {"kernel": FileVolume(guest), **(volumes or {})})


class Node:
    def __init__(self, folder: Path, facts: Facts, run_as: RunAs | None, guest: Path, wire: Wire | None = None) -> None:
        self.folder = folder
        self._wire = wire
        self._guest = guest
        self._facts, self._run_as = facts, run_as
        self.runtime = QemuRuntime(folder, RealWorld(), facts, run_as, wire)
        self._news = asyncio.Condition()
        self.told: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        await self.runtime.open(self._changed)

    async def reopen(self) -> None:
        """As an agent that was restarted."""
        await self.runtime.close()
        self.runtime = QemuRuntime(self.folder, RealWorld(), self._facts, self._run_as, self._wire)
        await self.open()

    async def end(self) -> None:
        for guest in self.runtime.guests():
            await self.runtime.remove(guest)
        await self.runtime.close()

    def _changed(self, guest: str) -> None:
        self.told.append(guest)
        task = asyncio.create_task(self._wake())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wake(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def start(self, settings: str = "rate=50", **about: Any) -> str:
        wanted = order(self._guest, settings, **about)
        await self.runtime.start(wanted)
        return wanted.guest

    def status(self, guest: str) -> GuestStatus:
        found = self.runtime.status(guest)
        assert found is not None
        return found

    def moved(self, guest: str) -> Moved:
        found = self.runtime.moved(guest)
        assert found is not None
        return found

    async def becomes(self, guest: str, state: str) -> GuestStatus:
        """Waits for the runtime's own word, and never asks by itself."""
        return await self.until(guest, lambda status: status.state == state)

    async def until(self, guest: str, good: Callable[[GuestStatus], bool], patience: float = PATIENCE) -> GuestStatus:
        async with asyncio.timeout(patience), self._news:
            await self._news.wait_for(lambda: good(self.status(guest)))
        return self.status(guest)

    async def text(self, guest: str) -> str:
        return b"".join([part async for part in await self.runtime.log(guest)]).decode(errors="replace").replace("\r", "")

    async def says(self, guest: str, pattern: str) -> re.Match[str]:
        """Reads along until the guest has said such a line."""
        found = await self._reads(guest, lambda heard: re.search(rf"^{pattern}$", heard, re.MULTILINE))
        assert found, f"it ended ({self.runtime.status(guest)}) without saying {pattern!r}:\n{await self.text(guest)}"
        return found

    async def _reads(self, guest: str, look: Callable[[str], Found | None]) -> Found | None:
        heard = ""
        async with asyncio.timeout(PATIENCE):
            async for part in await self.runtime.log(guest, follow=True):
                heard += part.decode(errors="replace").replace("\r", "")
                if found := look(heard):
                    return found
        return None

    async def ticks(self, guest: str) -> list[Tick]:
        return ticks_of(await self.text(guest))

    async def ticked(self, guest: str, times: int) -> None:
        """Reads along until it has ticked so often since it started, or came here."""
        assert await self._reads(guest, lambda heard: len(ticks_of(heard)) >= times), await self.text(guest)

    def order_of(self, guest: str) -> Order:
        """As an agent finds it in the pod."""
        definition = msgspec.convert(self._record(guest)["definition"], GuestDefinition)
        return Order(guest, definition, {"kernel": FileVolume(self._guest)})

    def _record(self, guest: str) -> Document:
        return msgspec.json.decode((self.folder / "guests" / guest / "guest.json").read_bytes())

    def pid(self, guest: str) -> int:
        return int(msgspec.json.decode((self.folder / "guests" / guest / "process.json").read_bytes())["pid"])
