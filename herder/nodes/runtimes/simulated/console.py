"""The serial port of a simulated guest: it says what happens to it, and echoes what it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator

from herder.nodes.runtimes.simulated.guest import Guest


class LogReader:
    def __init__(self, guest: Guest, follow: bool, begin: int = 0) -> None:
        self._guest = guest
        self._follow = follow
        self._next = begin

    async def read(self) -> AsyncIterator[bytes]:
        while True:
            lines = self._guest.log[self._next :]
            self._next += len(lines)
            if lines:
                yield b"".join(lines)
                continue
            if not self._follow or self._guest.ended or self._guest.gone:
                return
            await self._guest.more()


class SimulatedConsole:
    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._reader = LogReader(guest, True, len(guest.log))
        self._typed = b""

    def read(self) -> AsyncIterator[bytes]:
        return self._reader.read()

    async def write(self, data: bytes) -> None:
        self._typed += data.replace(b"\r", b"\n")
        *lines, self._typed = self._typed.split(b"\n")
        for line in lines:
            self._guest.write(f"you said: {line.decode(errors='replace')}")

    async def close(self) -> None:
        pass
