"""A move by QMP alone: two processes and the few commands that it takes. Nobody keeps records, and nobody checks anything."""

import asyncio
import contextlib
import itertools
import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Order
from herder.nodes.runtimes.qemu import RunAs, Wire, process, qmp
from herder.nodes.runtimes.qemu.blueprint import draw
from herder.nodes.runtimes.qemu.command import ConsoleFiles, Fittings, command_line
from herder.nodes.runtimes.qemu.facts import Facts
from herder.nodes.runtimes.qemu.progress import capabilities, parameters
from herder.nodes.runtimes.qemu.qmp import QMP, QMPError


@dataclass
class Bare:
    child: subprocess.Popen[bytes]
    talk: QMP
    completed: asyncio.Event

    def kill(self) -> None:
        self.talk.close()
        self.child.kill()
        self.child.wait()


def _tcp_pair(host: str) -> tuple[socket.socket, socket.socket]:
    with socket.create_server((host, 0)) as listener:
        connection = socket.create_connection(listener.getsockname())
        return listener.accept()[0], connection


class BareWay:
    def __init__(
        self, root: Path, order: Order, kernel: Path, facts: Facts, run_as: RunAs | None, wire: Wire | None = None
    ) -> None:
        self.root = root
        self._wire = wire
        self._facts, self._run_as = facts, run_as
        self._blueprint = draw(order, facts)
        self._kernel = root / "kernel"
        self._kernel.write_bytes(kernel.read_bytes())
        self._kernel.chmod(0o444)
        self._numbers = itertools.count()
        self._here: Bare | None = None

    async def start(self) -> None:
        self._here = await self._qemu(incoming=False)

    async def move(self) -> None:
        assert self._here is not None
        here, there = self._here, await self._qemu(incoming=True)
        ends = socket.socketpair() if self._wire is None else _tcp_pair(self._wire.address)
        if self._wire is not None:
            await self._secure(self._wire, there, "server")
            await self._secure(self._wire, here, "client")
        for side, end in zip((there, here), ends, strict=True):
            await side.talk.do("migrate-set-capabilities", capabilities=capabilities(PolicySettings()))
            await side.talk.do("getfd", descriptor=end.fileno(), fdname="migration")
            end.close()
        await here.talk.do("migrate-set-parameters", **parameters(PolicySettings()))
        await there.talk.do("migrate-incoming", uri="fd:migration")
        here.completed.clear()  # by which it came
        await here.talk.do("migrate", uri="fd:migration")
        await here.completed.wait()
        await there.talk.do("cont")
        here.kill()
        self._here = there

    async def _secure(self, wire: Wire, side: Bare, endpoint: str) -> None:
        folder = self.root / "tls"
        folder.mkdir(mode=0o755, exist_ok=True)
        own = wire.server if endpoint == "server" else wire.client
        names = {"ca-cert.pem": wire.ca, f"{endpoint}-cert.pem": own.certificate, f"{endpoint}-key.pem": own.key}
        for name, path in names.items():
            (folder / name).write_bytes(path.read_bytes())
        with contextlib.suppress(QMPError):
            await side.talk.do("object-del", id="tls")
        self.root.chmod(0o755)
        await side.talk.do("object-add", qom_type="tls-creds-x509", id="tls", endpoint=endpoint, verify_peer=True, dir=str(folder))
        await side.talk.do("migrate-set-parameters", tls_creds="tls", tls_hostname=wire.address if endpoint == "client" else "")

    async def end(self) -> None:
        if self._here is not None:
            self._here.kill()

    async def _qemu(self, *, incoming: bool) -> Bare:
        folder = self.root / f"qemu-{next(self._numbers)}"
        folder.mkdir()
        listener = qmp.listen(folder / "qmp")
        opened = [
            os.open(folder / "console.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
            os.open(self._kernel, os.O_RDONLY),
            os.open(os.devnull, os.O_RDWR),
        ]
        fittings = Fittings(qmp=listener.fileno(), console=ConsoleFiles(opened[0]), kernel=opened[1], incoming=incoming)
        connection = qmp.connect(folder / "qmp")
        command = command_line(self._blueprint, fittings, self._facts)
        child = process.start(command, folder, opened[2], fittings.descriptors(), self._run_as)
        listener.close()
        for descriptor in opened:
            os.close(descriptor)
        completed = asyncio.Event()

        def heard(name: str, data: dict[str, Any]) -> None:
            if name == "MIGRATION" and data.get("status") == "completed":
                completed.set()

        talk = QMP(connection, heard, lambda: None)
        await talk.greet()
        return Bare(child, talk, completed)
