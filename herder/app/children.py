"""Child processes: started, told apart from their parent's terminal, ended with it, and started again when they die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

import structlog

from herder.app.stopping import STOP_PATIENCE, stop_with_parent
from herder.kit.tasks import watched

log = structlog.get_logger()

FIRST_DELAY = 0.2
LONGEST_DELAY = 10.0
# One that has run this long is not in a crash loop.
HEALTHY_AFTER = 10.0

# A child that ends with this code has said why, and would only say it again.
HOPELESS = 64


class ChildFailed(Exception):
    """A child said that there is no point in starting it again."""


class Child:
    def __init__(self, name: str, arguments: Sequence[str], pass_fds: Sequence[int] = ()) -> None:
        self.name = name
        self._arguments = [sys.executable, "-m", "herder.app", *arguments]
        self._pass_fds = tuple(pass_fds)
        self._process: asyncio.subprocess.Process | None = None
        self.ready = asyncio.Event()
        # By which signal it was told to stop.
        self._order: signal.Signals | None = None
        self._stopping = asyncio.Event()
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Until stopped; a child that dies is started again, ever more slowly while it keeps dying."""
        try:
            await self._keep_running()
        finally:
            self._over.set()

    async def _keep_running(self) -> None:
        delay = FIRST_DELAY
        while not self._stopping.is_set():
            began = asyncio.get_running_loop().time()
            code = await self._once()
            if self._stopping.is_set():
                return
            if code == HOPELESS:
                raise ChildFailed(self.name)
            if asyncio.get_running_loop().time() - began > HEALTHY_AFTER:
                delay = FIRST_DELAY
            log.warning("a process died and is started again", child=self.name, code=code, seconds=delay)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
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
                preexec_fn=stop_with_parent(),
            )
        except OSError as error:
            # Too many processes, or too little memory, at the moment.
            log.error("a process could not be started", child=self.name, error=str(error))
            os.close(reading)
            return -1
        finally:
            os.close(writing)
        if self._order is not None:
            # Told to stop while it was being started.
            self._process.send_signal(self._order)
        waiting = watched(self._wait_ready(reading), "hearing that a process is ready", child=self.name)
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

    async def stop(self, order: signal.Signals = signal.SIGTERM) -> None:
        self._order = order
        self._stopping.set()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(order)
        try:
            async with asyncio.timeout(STOP_PATIENCE):
                await self._over.wait()
        except TimeoutError:
            log.warning("a process did not stop in time and is killed", child=self.name)
            if self._process is not None:
                self._process.kill()
            await self._over.wait()
