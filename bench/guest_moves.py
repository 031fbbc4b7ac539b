"""What is asked of each way to move a guest, and how the guest itself sees it: by the gap between its ticks here and there."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# It counts every two milliseconds, and writes a little meanwhile.
MEMORY = "256Mi"
LOAD = "rate=500 dirty=4M/s working-set=32M"
TICKS_BETWEEN = 50
PATIENCE = 120.0
LOOK_EVERY = 0.0005
CONSOLE = "console.log"


class Way(Protocol):
    """One guest, moved again and again. Wherever it runs, what it says is in a file `console.log` of its own below `root`."""

    root: Path

    async def start(self) -> None: ...

    async def move(self) -> None:
        """Until nothing is left to be done for it: it goes on at the target, and the source is gone or known not to be needed."""
        ...

    async def end(self) -> None: ...


@dataclass(frozen=True)
class Moved:
    seconds: float  # from the wish to its first tick at the target
    over: float  # from the wish until whoever wished it knows that it is done
    downtime_ms: float


class Listener:
    """Notes when which file grew. In a thread of its own: whoever moves the guest may be busy."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.first: dict[Path, float] = {}
        self.last: dict[Path, float] = {}
        self._sizes: dict[Path, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _listen(self) -> None:
        looks = 0
        while not self._stop.is_set():
            if looks % 10 == 0:
                with contextlib.suppress(OSError):  # folders go away meanwhile
                    self._sizes |= {path: 0 for path in self._root.rglob(CONSOLE) if path not in self._sizes}
            looks += 1
            for path, size in self._sizes.items():
                self._look(path, size)
            time.sleep(LOOK_EVERY)

    def _look(self, path: Path, size: int) -> None:
        with contextlib.suppress(OSError):
            now, grown = time.perf_counter(), os.stat(path).st_size
            if grown > size:
                self.first.setdefault(path, now)
                self.last[path] = now
                self._sizes[path] = grown


async def measure(way: Way, listener: Listener) -> Moved:
    source = max(listener.last, key=lambda path: listener.last[path])
    known = set(listener.first)
    began = time.perf_counter()
    await way.move()
    over = time.perf_counter() - began
    target = await _until(lambda: next(iter(set(listener.first) - known), None))
    there, here = listener.first[target], listener.last[source]
    return Moved(there - began, over, 1000 * (there - here))


async def counts(listener: Listener, seconds: float = TICKS_BETWEEN / 500) -> None:
    await _until(lambda: next(iter(listener.first), None))
    await asyncio.sleep(seconds)


async def _until(look: Callable[[], Path | None]) -> Path:
    async with asyncio.timeout(PATIENCE):
        while (found := look()) is None:  # noqa: ASYNC110 - the thread has no loop to wake
            await asyncio.sleep(0.001)
    return found


async def several(way: Way, times: int) -> list[Moved]:
    """The first one warms up and is not counted."""
    listener = Listener(way.root)
    try:
        await way.start()
        found: list[Moved] = []
        for _ in range(times + 1):
            await counts(listener)
            found.append(await measure(way, listener))
        return found[1:]
    finally:
        listener.close()
        await way.end()
