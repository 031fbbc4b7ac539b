"""What is done for pods: one thing at a time for each, and nobody waits long for it.

A QEMU that does not answer, or a disk that takes its time, must keep neither other pods waiting nor the end of its own pod: what
takes long goes on by itself, and is called off when its pod is to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import structlog

from herder.nodes.failures import Failures, failed_again

log = structlog.get_logger()
# Most of it is over by then.
PATIENCE = 2.0
# For what is called off to let go of what it holds.
CALLED_OFF_WITHIN = 1.0
# After so many seconds it is worth a word, and again: not at every look.
WORTH_A_WORD = (10, 60, 600)
T = TypeVar("T")


class TakesLong(Exception):
    """It is still under way; whoever asked is told when it has ended."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"under way for {seconds:.0f} s")
        self.seconds = seconds

    @property
    def word(self) -> str:
        """The same for a while, so that it is not written again and again; empty where it is too soon for one."""
        passed = [one for one in WORTH_A_WORD if self.seconds >= one]
        return f"it has taken more than {passed[-1]} s so far, and goes on" if passed else ""

    @property
    def next_word(self) -> float | None:
        """Seconds until there is another one."""
        return next((one - self.seconds for one in WORTH_A_WORD if one > self.seconds), None)


class _Attempt(Generic[T]):
    def __init__(self, task: asyncio.Task[T], ending: bool, began: float) -> None:
        self.task = task
        self.ending = ending
        self.began = began
        self.left_alone = False


class Attempts(Generic[T]):
    def __init__(self, changed: Callable[[str], None]) -> None:
        """`changed(uid)` is called when something has ended that took long."""
        self._changed = changed
        self._attempts: dict[str, _Attempt[T]] = {}
        # With when it may be tried again.
        self._failures: dict[str, tuple[Failures, float]] = {}

    async def run(self, uid: str, work: Callable[[], Coroutine[Any, Any, T]], *, ending: bool) -> T:
        """`work`, or what is under way already. Raises what that raises, and `TakesLong`. `ending`: nothing else matters now."""
        attempt = self._attempts.get(uid)
        if attempt is not None and ending and not attempt.ending:
            await self._call_off(uid, attempt)
            attempt = None
        if attempt is None:
            loop = asyncio.get_running_loop()
            attempt = self._attempts[uid] = _Attempt(loop.create_task(work()), ending, loop.time())
        await asyncio.wait([attempt.task], timeout=PATIENCE)
        return self._result(uid, attempt)

    def failed(self, uid: str, error: Exception) -> Failures:
        """Once more."""
        failures = failed_again(self._failures.get(uid, (None, 0.0))[0], error, "a pod's work failed, will be tried again")
        self._failures[uid] = (failures, asyncio.get_running_loop().time() + failures.wait)
        return failures

    def too_soon(self, uid: str) -> float:
        """Seconds until it is tried again after a failure, whatever else happens meanwhile."""
        _, at = self._failures.get(uid, (None, 0.0))
        return max(0.0, at - asyncio.get_running_loop().time())

    def went_well(self, uid: str) -> None:
        self._failures.pop(uid, None)

    def cancel(self, uid: str) -> bool:
        """Whether something was under way: what it has begun may still come about."""
        if (attempt := self._attempts.pop(uid, None)) is None:
            return False
        attempt.task.cancel()
        return True

    def forget(self, uid: str) -> None:
        self.cancel(uid)
        self._failures.pop(uid, None)

    def close(self) -> None:
        for uid in tuple(self._attempts):
            self.forget(uid)

    def _result(self, uid: str, attempt: _Attempt[T]) -> T:
        task = attempt.task
        if not task.done():
            if not attempt.left_alone:
                attempt.left_alone = True
                task.add_done_callback(lambda _: self._changed(uid))
            raise TakesLong(asyncio.get_running_loop().time() - attempt.began)
        if self._attempts.get(uid) is attempt:
            del self._attempts[uid]
        if attempt.left_alone:
            # The pod may have become another one meanwhile.
            self._changed(uid)
        if task.cancelled():
            raise RuntimeError("something that it waited for was cancelled")
        return task.result()

    async def _call_off(self, uid: str, attempt: _Attempt[T]) -> None:
        attempt.task.cancel()
        await asyncio.wait([attempt.task], timeout=CALLED_OFF_WITHIN)
        if attempt.task.done() and not attempt.task.cancelled() and (error := attempt.task.exception()) is not None:
            log.info("what was under way for a pod that ends had failed", uid=uid, error=str(error))
