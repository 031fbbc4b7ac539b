"""Between the machines and the API server: the place where calls are late, lost, refused or counted, and watches break.

All machines of one role (the two controllers processes) share a wire: the third write is the third, whichever of them made it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from herder.kube.transport import Call, Reply
from tests.simulation.machine import Machine

# Written by the clock or only by the way: faults are aimed at the writes that matter.
PASSING = ("/leases", "/events", "reviews")
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
Go = Callable[[], Awaitable[Reply]]


class Sent(msgspec.Struct, frozen=True):
    """A call on its way: who sent it, and which of the role's writes it is (0: none that counts)."""

    machine: Machine
    call: Call
    write: int


Around = Callable[[Sent, Go], Awaitable[Reply]]


class Wire:
    def __init__(self, role: str) -> None:
        self.role = role
        self.writes: list[str] = []
        self.around: list[Around] = []
        # Told of every answer that arrives where it was waited for.
        self.heard: list[Callable[[Sent, Reply], None]] = []
        # Until when what is watched is held back.
        self.held_until = 0.0
        # How many of the next watch events come twice.
        self.doubled = 0
        # How many of the next watches are told that their resourceVersion is too old.
        self.forgotten = 0
        # Until when a machine reaches nobody, by name.
        self.cut_until: dict[str, float] = {}
        self.connections: list[Connection] = []

    def sent(self, machine: Machine, call: Call) -> Sent:
        counts = call.method in WRITES and not any(one in call.path for one in PASSING)
        if counts:
            self.writes.append(f"{call.method} {call.path}")
        return Sent(machine, call, len(self.writes) if counts else 0)

    def is_cut(self, machine: Machine, now: float) -> bool:
        return now < self.cut_until.get(machine.name, 0.0)

    def break_watches(self) -> None:
        for connection in list(self.connections):
            connection.break_off()


class Connection:
    """One watch: lines on their way from the server to the client."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._ready = asyncio.Event()
        self.ended = False
        self.broken = False

    def push(self, piece: bytes) -> None:
        if piece and not self.ended:
            self._lines += piece.splitlines(keepends=True)
            self._ready.set()

    def end(self) -> None:
        """Well: the client gets what is on its way."""
        self.ended = True
        self._ready.set()

    def break_off(self) -> None:
        """In the middle: what is on its way is lost."""
        self.broken = True
        self._lines.clear()
        self.end()

    async def take(self) -> list[bytes]:
        """Nothing means the end."""
        await self._ready.wait()
        lines, self._lines = self._lines, []
        if not self.ended:
            self._ready.clear()
        return lines
