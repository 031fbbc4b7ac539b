"""The guest agent: a program in the guest (QEMU's own, qemu-ga) that answers on a serial port of its own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from herder.nodes.runtimes.qemu import qmp

PORT = "org.qemu.guest_agent.0"
LOOK_EVERY = 0.1
LONGEST_ANSWER = 1 << 20
# What it sends before the answer to this is of an earlier question.
_FRESH = b"\xff"
_numbers = itertools.count(1)


class AgentError(Exception):
    """The agent said no, in its own words."""


class GuestAgent:
    """One conversation. QEMU listens to one at a time: callers take turns."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, path: Path) -> GuestAgent:
        """Waits for an agent that is there: whoever has not come yet is waited for by whoever has the patience."""
        reader, writer = await asyncio.open_unix_connection(sock=qmp.connect(path), limit=LONGEST_ANSWER)
        agent = cls(reader, writer)
        try:
            await agent._synchronise()
        except BaseException:
            agent.close()
            raise
        return agent

    async def ping(self) -> None:
        await self.do("guest-ping")

    async def run(self, command: Sequence[str]) -> int:
        """Its exit code; of one that was killed, 128 and the signal, as shells do."""
        started = await self.do("guest-exec", path=command[0], arg=list(command[1:]))
        while True:
            status = await self.do("guest-exec-status", pid=started["pid"])
            if status["exited"]:
                return status["exitcode"] if "exitcode" in status else 128 + status.get("signal", 0)
            await asyncio.sleep(LOOK_EVERY)

    async def do(self, command: str, **arguments: Any) -> Any:
        self._send(command, arguments)
        return await self._answer()

    def close(self) -> None:
        self._writer.close()

    async def _synchronise(self) -> None:
        number = next(_numbers)
        # The first byte makes it drop the half of a question that somebody broke off.
        self._writer.write(_FRESH)
        self._send("guest-sync-delimited", {"id": number})
        while True:
            await self._reader.readuntil(_FRESH)
            if await self._answer() == number:
                return

    def _send(self, command: str, arguments: dict[str, Any]) -> None:
        asked = {"execute": command, **({"arguments": arguments} if arguments else {})}
        self._writer.write(msgspec.json.encode(asked) + b"\n")

    async def _answer(self) -> Any:
        answer = msgspec.json.decode(await self._reader.readuntil(b"\n"))
        if "error" in answer:
            raise AgentError(f"the guest agent says: {answer['error'].get('desc', 'no')}")
        return answer["return"]
