"""A bare QEMU with the tiny guest in it: what it says on its console, and QMP to drive it."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from qemu.qmp import ConnectError, EventListener, QMPClient

from tests.engines.processes import Child
from tests.engines.waiting import eventually

PROGRAM = "qemu-system-x86_64"
PATIENCE = 60.0
_TICK = re.compile(r"^tick (\d+) (ok|BAD) errors=(\d+) dirtied=(\d+)M$", re.MULTILINE)


@dataclass(frozen=True)
class Tick:
    number: int
    verdict: str
    errors: int
    dirtied: int


def ticks_of(text: str) -> list[Tick]:
    return [Tick(int(number), verdict, int(errors), int(dirtied)) for number, verdict, errors, dirtied in _TICK.findall(text)]


def assert_unbroken(text: str) -> None:
    """No tick is missing, doubled or torn, and no page was ever wrong."""
    ticks = ticks_of(text)
    assert len(ticks) == text.count("tick "), text
    broken = [(before.number, after.number) for before, after in pairwise(ticks) if after.number != before.number + 1]
    assert not broken and ticks[0].number == 1, f"{broken}:\n{text}"
    assert {(tick.verdict, tick.errors) for tick in ticks} == {("ok", 0)}, text


class Machine:
    """Sockets have names of at most 107 letters: the folder must be a short one."""

    def __init__(self, folder: Path, options: list[str]) -> None:
        self.folder = folder
        self._events = EventListener()
        self._serial = folder / "serial"
        sockets = [
            *("-chardev", f"socket,id=serial,path={folder / 'serial.socket'},server=on,wait=off,logfile={self._serial}"),
            *("-serial", "chardev:serial", "-qmp", f"unix:{folder / 'qmp.socket'},server=on,wait=off"),
        ]
        common = ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        self.child = Child([PROGRAM, *common, *sockets, *options], folder / "qemu.log")
        self._keyboard: asyncio.StreamWriter | None = None
        self._qmp = QMPClient()
        self._qmp.register_listener(self._events)

    async def connect(self) -> None:
        await eventually(self._connected, PATIENCE)

    async def _connected(self) -> bool:
        """The socket is there a moment before QEMU listens."""
        self.child.check()
        if (self.folder / "qmp.socket").exists():
            with suppress(ConnectError):
                await self._qmp.connect(str(self.folder / "qmp.socket"))
                return True
        return False

    async def do(self, command: str, **arguments: Any) -> Any:
        return await self._qmp.execute(command, {name.replace("_", "-"): value for name, value in arguments.items()})

    async def event(self, name: str) -> dict[str, Any]:
        """The next event of that name, with what it carries."""
        async with asyncio.timeout(PATIENCE):
            while (event := await self._events.get())["event"] != name:
                pass
        data: Any = event.get("data", {})
        return data

    @property
    def text(self) -> str:
        """All that the guest has said."""
        return self._serial.read_text(errors="replace").replace("\r", "") if self._serial.exists() else ""

    @property
    def ticks(self) -> list[Tick]:
        return ticks_of(self.text)

    async def says(self, pattern: str) -> re.Match[str]:
        """Waits until the guest has said a line like that."""

        async def look() -> re.Match[str] | None:
            found = re.search(rf"^{pattern}$", self.text, re.MULTILINE)
            assert found or self.child.ended() is None, f"ended without saying {pattern!r}:\n{self.child.tail()}\n{self.text}"
            return found

        found = await eventually(look, PATIENCE)
        assert found
        return found

    async def ticked(self, times: int) -> list[Tick]:
        """Waits until it has ticked so often since it started, or came here."""

        async def look() -> list[Tick]:
            assert len(self.ticks) >= times, self.text
            return self.ticks

        return await eventually(look, PATIENCE)

    async def type(self, line: str) -> None:
        if self._keyboard is None:  # and it stays: QEMU speaks with one at a time
            _, self._keyboard = await asyncio.open_unix_connection(str(self.folder / "serial.socket"))
        self._keyboard.write(line.encode() + b"\n")
        await self._keyboard.drain()

    async def ended(self) -> int:
        async def look() -> tuple[int] | None:
            code = self.child.ended()
            return None if code is None else (code,)

        code = await eventually(look, PATIENCE)
        assert code
        return code[0]

    async def migration(self, status: str) -> dict[str, Any]:
        """Waits until the migration is there, and says how it stands."""

        async def look() -> dict[str, Any]:
            answer = await self.do("query-migrate")
            assert answer.get("status") not in {"failed", "cancelled"} - {status}, answer
            assert answer.get("status") == status, answer
            return answer

        return await eventually(look, PATIENCE)

    async def close(self) -> None:
        with suppress(EOFError, ConnectionError):  # it may have ended by itself
            await self._qmp.disconnect()
        if self._keyboard is not None:
            self._keyboard.close()
        self.child.stop()


@asynccontextmanager
async def running(*options: str) -> AsyncGenerator[Machine]:
    with tempfile.TemporaryDirectory(prefix="guest-") as folder:
        machine = Machine(Path(folder), list(options))
        try:
            await machine.connect()
            yield machine
        finally:
            await machine.close()
