"""The queue of a controller."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from herder.kube.bucket import Rate
from herder.kube.queue import Backoff, Closed, Queue
from herder.kube.resources import Key
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time, samples

A, B, C = Key("n", "a"), Key("n", "b"), Key("", "c")


def _queue(backoff: Backoff | None = None, registry: CollectorRegistry | None = None) -> Queue:
    return Queue(VirtualWorld(random=0.0), "q", backoff=backoff, registry=registry)


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _take(queue: Queue) -> tuple[Key, float]:
    key = await queue.get()
    queue.done(key)
    return key, round(_now(), 6)


def test_names_come_in_the_order_in_which_they_were_added_and_each_once() -> None:
    async def scenario() -> list[Key]:
        queue = _queue()
        for key in (B, A, B, C, A):
            queue.add(key)
        assert len(queue) == 3
        return [(await _take(queue))[0] for _ in range(3)]

    assert in_virtual_time(scenario()) == [B, A, C]


def test_a_name_that_others_wait_for_comes_before_them_wherever_it_stood() -> None:
    async def scenario() -> list[Key]:
        queue = _queue()
        for key in (A, B, C):
            queue.add(key)
        queue.add_ahead(C)
        queue.add_ahead(B)
        assert len(queue) == 3
        first = await queue.get()
        queue.add_ahead(first)
        queue.done(first)
        return [first, *[(await _take(queue))[0] for _ in range(3)]]

    assert in_virtual_time(scenario()) == [C, B, C, A]


def test_a_name_added_while_it_is_worked_on_is_looked_at_once_more_afterwards() -> None:
    async def scenario() -> None:
        queue = _queue()
        queue.add(A)
        key = await queue.get()
        queue.add(A)
        queue.add(A)
        queue.add(B)
        # Nobody else gets it meanwhile.
        assert len(queue) == 1
        queue.done(key)
        assert [(await _take(queue))[0] for _ in range(2)] == [B, A]
        assert len(queue) == 0

    in_virtual_time(scenario())


def test_a_delayed_name_comes_at_its_earliest_time_and_once() -> None:
    async def scenario() -> list[tuple[Key, float]]:
        queue = _queue()
        queue.add_after(A, 30)
        queue.add_after(B, 20)
        queue.add_after(A, 10)
        queue.add_after(A, 40)
        queue.add_after(C, 60)
        return [await _take(queue) for _ in range(3)]

    assert in_virtual_time(scenario()) == [(A, 10), (B, 20), (C, 60)]


def test_all_delayed_names_share_one_timer() -> None:
    async def scenario() -> int:
        queue = _queue()
        for number in range(1000):
            queue.add_after(Key("n", str(number)), 100 + number)
        scheduled = [handle for handle in getattr(asyncio.get_running_loop(), "_scheduled") if not handle.cancelled()]  # noqa: B009
        assert len(asyncio.all_tasks()) == 1
        return len(scheduled)

    assert in_virtual_time(scenario()) == 1


def test_failures_double_the_wait_up_to_the_longest_until_forgotten() -> None:
    async def scenario() -> list[float]:
        queue = _queue(Backoff(first=0.005, longest=1000))
        waits: list[float] = []
        for _ in range(20):
            began = _now()
            queue.add_backoff(A)
            waits.append(round((await _take(queue))[1] - began, 6))
        assert queue.failures(A) == 20
        queue.forget(A)
        began = _now()
        queue.add_backoff(A)
        assert round((await _take(queue))[1] - began, 6) == 0.005
        return waits

    waits = in_virtual_time(scenario())
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[-2:] == [1000, 1000]


def test_a_name_that_failed_ten_thousand_times_still_waits_only_the_longest_time() -> None:
    assert Backoff().after(10_000) == 1000


def test_many_that_fail_together_come_back_at_the_overall_rate() -> None:
    async def scenario() -> list[float]:
        queue = _queue(Backoff(first=0.001, overall=Rate(burst=2, per_second=1)))
        for number in range(5):
            queue.add_backoff(Key("n", str(number)))
        return [(await _take(queue))[1] for _ in range(5)]

    assert in_virtual_time(scenario()) == [0.001, 0.001, 1, 2, 3]


def test_those_who_wait_are_served_in_turn_and_a_cancelled_one_takes_nothing_with_it() -> None:
    async def scenario() -> None:
        queue = _queue()
        first, second, third = (asyncio.create_task(queue.get()) for _ in range(3))
        await asyncio.sleep(0)
        queue.add(A)
        # It was woken for A, and never gets to run.
        first.cancel()
        queue.add(B)
        assert (await second, await third) == (A, B)
        assert first.cancelled()

    in_virtual_time(scenario())


def test_a_closed_queue_hands_out_what_waits_and_then_ends() -> None:
    async def scenario() -> None:
        queue = _queue()
        queue.add(A)
        queue.add_after(C, 5)
        working = await queue.get()
        queue.add(A)
        queue.add(B)
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        assert await waiting == B
        queue.close()
        queue.add(C)
        late = asyncio.create_task(queue.get())
        drained = asyncio.create_task(queue.wait_drained())
        await asyncio.sleep(0)
        assert not late.done()
        queue.done(working)
        # It was wanted once more before the end.
        assert await late == A
        queue.done(B)
        last = asyncio.create_task(queue.get())
        await asyncio.sleep(1)
        assert not drained.done()
        queue.done(A)
        with pytest.raises(Closed):
            await last
        await drained
        with pytest.raises(Closed):
            await queue.get()

    in_virtual_time(scenario())


def test_it_counts_as_client_go_does() -> None:
    async def scenario() -> None:
        registry = CollectorRegistry()
        queue = _queue(registry=registry)
        for name in ("workqueue_adds_total", "workqueue_retries_total", "workqueue_depth", "workqueue_work_duration_seconds_count"):
            assert samples(registry, name) == {("q",): 0}
        queue.add(A)
        queue.add(A)
        queue.add(B)
        await asyncio.sleep(2)
        assert samples(registry, "workqueue_depth") == {("q",): 2}
        key = await queue.get()
        await asyncio.sleep(3)
        await queue.get()
        await asyncio.sleep(4)
        assert samples(registry, "workqueue_unfinished_work_seconds") == {("q",): 11}
        assert samples(registry, "workqueue_longest_running_processor_seconds") == {("q",): 7}
        queue.done(key)
        queue.add_backoff(key)
        assert samples(registry, "workqueue_adds_total") == {("q",): 2}
        assert samples(registry, "workqueue_retries_total") == {("q",): 1}
        assert samples(registry, "workqueue_queue_duration_seconds_sum") == {("q",): 2 + 5}
        assert samples(registry, "workqueue_work_duration_seconds_sum") == {("q",): 7}

    in_virtual_time(scenario())
