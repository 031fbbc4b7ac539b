"""How many jobs are looked at at once (maxConcurrentReconciles), and how fast pods are evicted (evictQPS, evictBurst)."""

from __future__ import annotations

import asyncio

from herder.controllers.job.flow_control import FlowControl
from herder.controllers.job.gate import Gate
from herder.rules.herder_config import JobsConfig
from tests.unit.kube.virtual import in_virtual_time


class Settings:
    def __init__(self, config: JobsConfig) -> None:
        self.config = config

    def __call__(self) -> JobsConfig:
        return self.config


async def _most_inside(gate: Gate, jobs: int) -> tuple[int, float]:
    """The most that were inside at once, and how long all of them took; each stays for a second."""
    inside = most = 0

    async def look() -> None:
        nonlocal inside, most
        async with gate:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(1)
            inside -= 1

    began = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for _ in range(jobs):
            group.create_task(look())
    return most, asyncio.get_running_loop().time() - began


def test_no_more_than_so_many_are_looked_at_at_once() -> None:
    for most in (1, 3):
        assert in_virtual_time(_most_inside(Gate(lambda most=most: most), 6)) == (most, 6 / most)


def test_another_number_counts_at_once() -> None:
    async def scenario() -> tuple[int, float]:
        most = 1
        gate = Gate(lambda: most)
        looks = asyncio.create_task(_most_inside(gate, 7))
        await asyncio.sleep(0.5)
        most = 6
        gate.changed()
        return await looks

    assert in_virtual_time(scenario()) == (6, 2.0)


def test_one_that_is_cancelled_while_it_waits_leaves_the_gate_as_it_was() -> None:
    async def scenario() -> tuple[int, float]:
        gate = Gate(lambda: 1)
        async with gate:
            waits = asyncio.create_task(_most_inside(gate, 1))
            await asyncio.sleep(0.1)
            waits.cancel()
            await asyncio.wait([waits])
        return await _most_inside(gate, 2)

    assert in_virtual_time(scenario()) == (1, 2.0)


def test_the_bucket_is_empty_at_the_start() -> None:
    """Trap: leader change must not refill the bucket."""

    async def scenario() -> list[float]:
        flow = FlowControl(Settings(JobsConfig(evict_qps=2.0, evict_burst=5)))
        return [flow.wait(f"job-{number}") for number in range(3)]

    assert in_virtual_time(scenario()) == [0.5, 1.0, 1.5]


def test_a_job_keeps_its_turn_until_it_has_used_it() -> None:
    async def scenario() -> tuple[float, float, float]:
        flow = FlowControl(Settings(JobsConfig(evict_qps=1.0)))
        flow.wait("a")
        await asyncio.sleep(1)
        kept = flow.wait("a")
        flow.done("a")
        return kept, flow.wait("b"), flow.wait("a")

    assert in_virtual_time(scenario()) == (0.0, 1.0, 2.0)


def test_what_was_saved_up_is_at_most_the_burst() -> None:
    async def scenario() -> list[float]:
        flow = FlowControl(Settings(JobsConfig(evict_qps=1.0, evict_burst=3)))
        await asyncio.sleep(1000)
        return [flow.wait(f"job-{number}") for number in range(5)]

    assert in_virtual_time(scenario()) == [0, 0, 0, 1.0, 2.0]


def test_another_rate_counts_at_once_and_begins_empty() -> None:
    async def scenario() -> tuple[float, float]:
        settings = Settings(JobsConfig(evict_qps=0.01))
        flow = FlowControl(settings)
        slow = flow.wait("a")
        settings.config = JobsConfig(evict_qps=10.0, evict_burst=10)
        return slow, flow.wait("a")

    assert in_virtual_time(scenario()) == (100.0, 0.1)
