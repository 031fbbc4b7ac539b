"""Tasks and threads that nobody waits for: none of them ends without a word.

What has to go on as long as the process does ends the process when it ends by itself: whoever runs it starts it again, which is
better than one that looks healthy and does half of its work. What concerns one object only is logged with that object's name.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

import structlog

log = structlog.get_logger()
T = TypeVar("T")
# With which a process ends because something ended that must not.
TASK_ENDED = 72
# For the others to come to an end in order; then the kernel ends the process.
LAST_SECONDS = 10


def keep_running(work: Coroutine[Any, Any, None], name: str, *, may_return: bool = False) -> asyncio.Task[None]:
    """To be cancelled by its owner, and ended by nobody else. `may_return`: it says by returning that nothing is left to do."""
    task = asyncio.get_running_loop().create_task(work, name=name)

    def done(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None or not (may_return or task.cancelling()):
            end_process(name, error or _how_it_ended(task))

    task.add_done_callback(done)
    return task


def _how_it_ended(task: asyncio.Task[None]) -> Exception:
    return RuntimeError("something that it waited for was cancelled" if task.cancelled() else "it returned")


def end_process(name: str, error: BaseException) -> NoReturn:
    """On the event loop: it stops, everything else is cancelled, and the process ends with `TASK_ENDED`."""
    log.critical("a part of this process ended by itself, so the process ends", part=name, exc_info=error)
    if threading.current_thread() is threading.main_thread():
        signal.alarm(LAST_SECONDS)
    raise SystemExit(TASK_ENDED)


def keep_thread(work: Callable[[], None], name: str, loop: asyncio.AbstractEventLoop) -> threading.Thread:
    """A thread that may return, and must not fail."""

    def run() -> None:
        try:
            work()
        except Exception as error:
            loop.call_soon_threadsafe(end_process, name, error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def watched(
    work: Coroutine[Any, Any, T],
    what: str,
    *,
    kept_in: set[asyncio.Task[T]] | None = None,
    expected: tuple[type[Exception], ...] = (),
    failed: Callable[[BaseException], None] | None = None,
    **about: Any,
) -> asyncio.Task[T]:
    """For one object, which `about` names. Its failure is logged, unless it is `expected`, and told to `failed`, whatever it is."""
    task = asyncio.get_running_loop().create_task(work)

    def done(task: asyncio.Task[T]) -> None:
        if kept_in is not None:
            kept_in.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not isinstance(error, expected):
            log.error(f"{what} failed", error=str(error) or type(error).__name__, exc_info=error, **about)
        if failed is not None:
            failed(error)

    if kept_in is not None:
        kept_in.add(task)
    task.add_done_callback(done)
    return task
