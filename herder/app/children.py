"""Child processes: started, told apart from their parent's terminal, ended with it, and started again when they die."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Sequence

import structlog

log = structlog.get_logger()

_PR_SET_PDEATHSIG = 1
FIRST_DELAY = 0.2
LONGEST_DELAY = 10.0
# One that has run this long is not in a crash loop.
HEALTHY_AFTER = 10.0
STOP_PATIENCE = 10.0

# A child that ends with this code has said why, and would only say it again.
HOPELESS = 64


class ChildFailed(Exception):
    """A child said that there is no point in starting it again."""


def _die_with_parent() -> None:
    """So that not even a killed supervisor leaves an engine behind that holds the data."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    def __init__(self, name: str, arguments: Sequence[str], pass_fds: Sequence[int] = ()) -> None:
        self.name = name
        self._arguments = [sys.executable, "-m", "herder.app", *arguments]
        self._pass_fds = tuple(pass_fds)
        self._process: asyncio.subprocess.Process | None = None
        self.ready = asyncio.Event()
        self._stopping = False

    async def run(self) -> None:
        """Until stopped; a child that dies is started again, ever more slowly while it keeps dying."""
        delay = FIRST_DELAY
        while True:
            began = asyncio.get_running_loop().time()
            code = await self._once()
            if self._stopping:
                return
            if code == HOPELESS:
                raise ChildFailed(self.name)
            if asyncio.get_running_loop().time() - began > HEALTHY_AFTER:
                delay = FIRST_DELAY
            log.warning("a process died and is started again", child=self.name, code=code, seconds=delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)

    async def _once(self) -> int:
        reading, writing = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._arguments,
                "--ready-fd",
                str(writing),
                pass_fds=(*self._pass_fds, writing),
                stdin=asyncio.subprocess.DEVNULL,
                # Ctrl-C goes to the supervisor alone, which then ends everyone in order.
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        finally:
            os.close(writing)
        waiting = asyncio.create_task(self._wait_ready(reading))
        try:
            return await self._process.wait()
        finally:
            self._process = None
            self.ready.clear()
            waiting.cancel()

    async def _wait_ready(self, reading: int) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        with os.fdopen(reading, "rb") as file:
            transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
            try:
                if await reader.read(1):
                    self.ready.set()
            finally:
                transport.close()

    async def stop(self) -> None:
        self._stopping = True
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
            try:
                async with asyncio.timeout(STOP_PATIENCE):
                    await process.wait()
            except TimeoutError:
                log.warning("a process did not stop in time and is killed", child=self.name)
                process.kill()
                await process.wait()
