"""How many jobs are looked at at once: a number that may change while we run (maxConcurrentReconciles)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType


class Gate:
    """In the order of arrival."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def changed(self) -> None:
        """The number may be another one."""
        self._let_in()

    async def __aenter__(self) -> None:
        if self._inside < self._most() and not self._waiting:
            self._inside += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._inside < self._most():
            turn = self._waiting.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)
