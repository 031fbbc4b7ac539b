"""The control socket, with a QEMU that says what a test wants."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import msgspec
import pytest

from herder.nodes.runtimes.qemu.qmp import QMP, Gone, QMPError

GREETING = b'{"QMP": {"version": {}, "capabilities": []}}\r\n'


class Qemu:
    def __init__(self) -> None:
        ours, self.end = socket.socketpair()
        self.lost = False
        self.client = QMP(ours, lambda name, data: None, self._is_lost)

    def _is_lost(self) -> None:
        self.lost = True

    def heard(self) -> list[str]:
        self.end.setblocking(False)
        raw = self.end.recv(1 << 16).replace(b"}{", b"}\n{")
        return [msgspec.json.decode(line)["execute"] for line in raw.splitlines()]

    def say(self, *lines: Any) -> None:
        for line in lines:
            self.end.send(line if isinstance(line, bytes) else msgspec.json.encode(line) + b"\r\n")


async def test_what_qemu_is_asked_first_is_there_before_it_speaks() -> None:
    """Each turn of the two would wake both up once more."""
    qemu = Qemu()
    asking = asyncio.create_task(qemu.client.greet("query-status"))
    await asyncio.sleep(0)
    assert qemu.heard() == ["qmp_capabilities", "query-status"]
    qemu.say(GREETING, {"return": {}}, {"event": "RESUME", "data": {}}, {"return": {"status": "running"}})
    assert await asking == {"status": "running"}
    qemu.client.close()


async def test_a_qemu_that_ends_before_it_answers_is_gone() -> None:
    for said in ([], [GREETING], [GREETING, {"return": {}}]):
        qemu = Qemu()
        asking = asyncio.create_task(qemu.client.greet("query-status"))
        await asyncio.sleep(0)
        qemu.heard()
        qemu.say(*said)
        qemu.end.close()
        with pytest.raises(Gone):
            await asking
        assert qemu.lost


async def test_a_qemu_that_is_gone_already_is_gone() -> None:
    qemu = Qemu()
    qemu.end.close()
    with pytest.raises(Gone):
        await qemu.client.greet("query-status")


async def test_what_qemu_refuses_is_told_in_its_words() -> None:
    qemu = Qemu()
    asking = asyncio.create_task(qemu.client.greet("query-status"))
    await asyncio.sleep(0)
    qemu.say(GREETING, {"return": {}}, {"error": {"class": "GenericError", "desc": "not today"}})
    with pytest.raises(QMPError, match="not today"):
        await asking
    qemu.client.close()
