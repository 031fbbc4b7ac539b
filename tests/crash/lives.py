"""One data directory, one address, and an engine that is killed and started again between them."""

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.engines.embedded import read_kubeconfig, run_embedded
from tests.engines.engine import Engine

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
PATIENCE = 30


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Lives:
    """The listening socket is ours and outlives the engine, as under `herder up`: callers wait, and are not refused."""

    def __init__(self, engine: Engine, process: asyncio.subprocess.Process) -> None:
        self.engine = engine
        self._process = process
        self._pid = 0
        self.kills = 0

    async def start(self, calls: int = 0) -> None:
        """Returns before the engine is ready. With `calls` it kills itself at so many calls of a restore."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(b"%d\n" % calls)
        self._pid = int(await asyncio.wait_for(self._process.stdout.readline(), PATIENCE))

    async def ready(self) -> None:
        assert self._process.stdout is not None
        told = await asyncio.wait_for(self._process.stdout.readexactly(1), PATIENCE)
        assert told == b"r", "the engine ended before it was ready"

    async def kill(self) -> None:
        """Also where it may have killed itself already."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self.kills += 1
        assert self._process.stdout is not None
        # It may have become ready in its last moment.
        while await asyncio.wait_for(self._process.stdout.readexactly(1), PATIENCE) != b"d":
            pass

    async def end(self) -> None:
        assert self._process.stdin is not None
        self._process.kill()
        await self._process.wait()


def _moved(engine: Engine, port: int) -> Engine:
    return Engine(
        engine.name, f"https://127.0.0.1:{port}", engine.ca, engine.client_certificate, engine.client_key, engine.kubeconfig
    )


@asynccontextmanager
async def many_lives(folder: Path) -> AsyncGenerator[Lives]:
    """In a data directory that `herder up` has made, and left in peace."""
    with run_embedded(folder):
        pass
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        listener.set_inheritable(True)
        with (folder / "engine.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.crash.forking",
                str(folder / "data"),
                str(listener.fileno()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                pass_fds=(listener.fileno(),),
                cwd=Path(__file__).parents[2],
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        engine = _moved(read_kubeconfig("embedded", folder / "kubeconfig", folder), listener.getsockname()[1])
        lives = Lives(engine, process)
        try:
            yield lives
        finally:
            await lives.end()
