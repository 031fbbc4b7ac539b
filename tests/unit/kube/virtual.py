"""An event loop whose time passes only while everybody waits: an hour of waiting takes no time, and always the same."""

from __future__ import annotations

import asyncio
import itertools
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

Value = TypeVar("Value")
EPOCH = 1_750_000_000.0
PATIENCE = 5.0


class _Selector(selectors.SelectSelector):
    """Sleeping is moving the time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None:
            self.now += max(0.0, timeout)
            return super().select(0)
        # Nobody waits for a time: only a thread, such as those of the default executor at the end, can still wake us.
        woken = super().select(PATIENCE)
        if not woken:
            raise RuntimeError("everybody waits for something that can never happen")
        return woken


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def pass_over(self, seconds: float) -> None:
        """As for a process that was stopped: time has passed, and nobody could do anything meanwhile."""
        self._virtual.now += seconds


def in_virtual_time(scenario: Coroutine[Any, Any, Value]) -> Value:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scenario)


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


class VirtualWorld:
    """Its clock can be set without time passing; ids are counted."""

    def __init__(self, random: float = 0.5) -> None:
        self.skew = 0.0
        self._random = random
        self._numbers = itertools.count(1)

    def now(self) -> float:
        return EPOCH + asyncio.get_running_loop().time() + self.skew

    def random(self) -> float:
        return self._random

    def uid(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._numbers):012d}"

    def suffix(self) -> str:
        return f"{next(self._numbers):05d}"


def samples(registry: Any, name: str) -> Mapping[tuple[str, ...], float]:
    """The values of one metric by the values of its labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }
