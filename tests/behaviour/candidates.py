"""Processes that want to lead, and a line to the API server that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from tests.engines.engine import Engine
from tests.engines.processes import die_with_parent, free_ports

ROOT = Path(__file__).parents[2]


class Candidate:
    def __init__(self, command: Iterable[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                preexec_fn=die_with_parent,
            )

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def runs(self) -> bool:
        return self._process.poll() is None

    async def ended(self) -> int:
        return await asyncio.to_thread(self._process.wait, 30)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def counting(engine_config: Path, namespace: str, folder: Path, *names: str) -> Generator[dict[str, Candidate]]:
    command = (sys.executable, "-m", "tests.behaviour.counting", str(engine_config), namespace)
    with contextlib.ExitStack() as stack:
        made: dict[str, Candidate] = {}
        for name in names:
            made[name] = Candidate([*command, name], folder / f"{name}.log")
            stack.callback(made[name].close)
        yield made


class Line:
    """Between a client and the API server: cut, it is as if the server had gone."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        split = urlsplit(engine.server)
        self._server = (split.hostname or "", split.port or 443)
        (self._port,) = free_ports(1)
        self.kubeconfig = folder / "through-the-line"
        document = yaml.safe_load(engine.kubeconfig.read_text())
        document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._port}"
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(document))
        self._listening: asyncio.Server | None = None
        self._open: list[asyncio.StreamWriter] = []

    async def mend(self) -> None:
        self._listening = await asyncio.start_server(self._joined, "127.0.0.1", self._port)

    async def cut(self) -> None:
        if self._listening is not None:
            self._listening.close()
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(*self._server)
            self._open += [writer, far_writer]
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()
