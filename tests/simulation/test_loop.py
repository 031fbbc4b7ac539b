"""Virtual time: it jumps over what nobody does, and says so when nothing can happen any more."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from tests.simulation import loop as loops
from tests.simulation.loop import Stuck, VirtualLoop
from tests.simulation.simulation import Simulation, simulate

T = TypeVar("T")


def test_a_year_of_sleep_takes_no_time_and_sleepers_wake_in_order() -> None:
    woken: list[tuple[float, str]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append((asyncio.get_running_loop().time(), name))

    async def main() -> None:
        await asyncio.gather(sleeper("year", 31_536_000.0), sleeper("hour", 3600.0), sleeper("day", 86_400.0))

    began = time.monotonic()
    _run(main())
    assert [name for _, name in woken] == ["hour", "day", "year"]
    assert woken[-1][0] == pytest.approx(31_536_000.0)
    assert time.monotonic() - began < 60


def test_what_would_be_a_thread_runs_here() -> None:
    async def main() -> int:
        return await asyncio.to_thread(threading.get_ident)

    assert _run(main()) == threading.get_ident()


def test_nobody_waits_for_ever() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck, match="nothing is left that could wake anyone"):
        _run(main())


def test_nobody_is_busy_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MOST_ROUNDS", 1000)

    async def main() -> None:
        while True:  # noqa: ASYNC110 - what this test is about
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="busy for ever"):
        _run(main())


def test_a_machine_that_is_killed_ends_in_the_middle_and_starts_again(seed: int) -> None:
    lived: list[str] = []

    async def life(machine: object) -> None:
        lived.append("begins")
        # Tasks of its own end with it, also those that nobody waits for.
        tasks = [asyncio.create_task(_forever(lived))]
        await asyncio.sleep(10)
        lived.append(f"ends {len(tasks)}")

    async def main(simulation: Simulation) -> None:
        machine = simulation.machine("one", life)
        machine.start()
        await asyncio.sleep(5)
        machine.crash(restart_after=1.0)
        await asyncio.sleep(6)

    simulate(seed, main)
    assert lived == ["begins", "task ends", "begins", "task ends"]


async def _forever(lived: list[str]) -> None:
    try:
        await asyncio.sleep(1_000_000)
    finally:
        lived.append("task ends")


def _run(work: Coroutine[Any, Any, T]) -> T:
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
