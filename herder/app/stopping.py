"""How our processes are told to stop, and whether guests end with them.

An order to end guests is only ever given by a person, through the supervisor: SIGINT and SIGTERM. A supervisor that is gone gives
no order: the kernel then sends its children `LEAVE_GUESTS`, as does a supervisor that was asked to leave them running.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Callable

# Stop, and leave guests running: the next `herder up` finds them again.
LEAVE_GUESTS = signal.SIGUSR1
# How long a process that was told to stop may take.
STOP_PATIENCE = 10.0

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class Stop:
    """Set when this process is told to stop."""

    def __init__(self, *, supervised: bool) -> None:
        self._told = asyncio.Event()
        self._supervisor = os.getppid() if supervised else None
        self.ends_guests = False

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._tell, True)
        loop.add_signal_handler(LEAVE_GUESTS, self._tell, False)

    def listen_to_terminal(self) -> None:
        """A connection that is lost is no order to end guests. Under nohup nobody wants to hear of it at all."""
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._tell, False)

    async def wait(self) -> None:
        await self._told.wait()

    def is_set(self) -> bool:
        return self._told.is_set()

    def _tell(self, ends_guests: bool) -> None:
        if not self._told.is_set():
            self.ends_guests = ends_guests
        if self._supervisor is not None and os.getppid() != self._supervisor:
            # Nobody is left who would kill us, should stopping take for ever; and whoever comes next waits for us.
            signal.alarm(int(STOP_PATIENCE))
        self._told.set()


def stop_with_parent() -> Callable[[], None]:
    """Called in a child before it becomes another program: not even a killed supervisor leaves an engine that holds the data."""
    parent = os.getpid()

    def follow() -> None:
        signal.signal(LEAVE_GUESTS, signal.SIG_DFL)
        _LIBC.prctl(_PR_SET_PDEATHSIG, LEAVE_GUESTS)
        if os.getppid() != parent:
            # It was gone before the kernel knew whom to tell.
            os._exit(1)

    return follow
