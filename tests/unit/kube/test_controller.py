"""A controller at work: what becomes of each outcome."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from herder.kube.controller import AGAIN, DONE, TRIES_UNTIL_MISSED, Later, Result, Work
from herder.kube.errors import Conflict, NotFound, TooManyRequests, error_from
from herder.kube.metrics import RESULTS
from herder.kube.queue import Queue
from herder.kube.resources import Key
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time, samples

A, B = Key("n", "a"), Key("n", "b")
log = structlog.get_logger()
Step = Callable[[], Awaitable[Result]] | Result | Exception


class Scripted:
    """Does with each name what it was told, one step for each look."""

    name = "scripted"

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.looks: list[tuple[Key, float]] = []

    async def reconcile(self, key: Key) -> Result:
        self.looks.append((key, round(asyncio.get_running_loop().time(), 6)))
        step = self._steps.pop(0) if self._steps else DONE
        if isinstance(step, Exception):
            raise step
        return await step() if callable(step) else step


class Bench:
    def __init__(self, controller: Scripted, workers: int = 1, limit: float = 300) -> None:
        self.registry = CollectorRegistry()
        world = VirtualWorld(random=0.0)
        self.queue = Queue(world, "scripted", registry=self.registry)
        self.controller = controller
        self._work = Work(controller, self.queue, workers, world=world, registry=self.registry, limit=limit)

    async def for_(self, seconds: float) -> None:
        task = asyncio.create_task(self._work.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    def results(self) -> dict[str, float]:
        found = samples(self.registry, "herder_reconcile_total")
        return {result: value for (_, result), value in found.items() if value}


def _looks(*steps: Step, limit: float = 300) -> tuple[list[float], dict[str, float]]:
    async def scenario() -> tuple[list[float], dict[str, float]]:
        bench = Bench(Scripted(*steps), limit=limit)
        bench.queue.add(A)
        await bench.for_(10_000)
        return [when for _, when in bench.controller.looks], bench.results()

    return in_virtual_time(scenario())


def test_done_is_not_looked_at_again() -> None:
    assert _looks(DONE) == ([0], {"done": 1})


def test_later_is_looked_at_when_its_time_has_come() -> None:
    assert _looks(Later(60), Later(0)) == ([0, 60, 60], {"later": 2, "done": 1})


def test_a_look_that_comes_a_hair_too_early_is_not_followed_by_others_at_the_same_time() -> None:
    looks, _ = _looks(Later(60), Later(1e-18), Later(1e-18))
    assert looks == sorted(set(looks))


def test_again_is_looked_at_soon_and_more_slowly_each_time() -> None:
    assert _looks(AGAIN, AGAIN) == ([0, 0.005, 0.015], {"again": 2, "done": 1})


def test_an_error_is_tried_again_more_slowly_each_time_and_success_makes_up_for_it() -> None:
    looks, results = _looks(ValueError("x"), ValueError("x"), Later(1), ValueError("x"))
    assert looks == [0, 0.005, 0.015, 1.015, 1.02]
    assert results == {"error": 3, "later": 1, "done": 1}


def test_a_server_that_asks_to_wait_is_waited_for() -> None:
    busy = TooManyRequests(429, "TooManyRequests", "slow down", {"retryAfterSeconds": 7})
    assert _looks(busy) == ([0, 7], {"passing": 1, "done": 1})


def test_one_that_hangs_is_ended_and_counted() -> None:
    async def hang() -> Result:
        await asyncio.Event().wait()
        return DONE

    assert _looks(hang, limit=30) == ([0, 30.005], {"timeout": 1, "done": 1})


def test_a_timeout_of_its_own_is_an_error_like_others() -> None:
    assert _looks(TimeoutError("the disk"))[1] == {"error": 1, "done": 1}


def test_a_cancelled_thing_inside_does_not_kill_the_worker() -> None:
    async def cancelled() -> Result:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task
        return DONE

    assert _looks(cancelled)[1] == {"error": 1, "done": 1}


def test_every_result_is_there_from_zero() -> None:
    async def scenario() -> None:
        bench = Bench(Scripted())
        assert samples(bench.registry, "herder_reconcile_total") == {("scripted", result): 0 for result in RESULTS}
        assert samples(bench.registry, "herder_reconcile_duration_seconds_count") == {("scripted",): 0}

    in_virtual_time(scenario())


def test_several_workers_never_share_a_name() -> None:
    busy: list[str] = []
    together: list[int] = []

    class Slow(Scripted):
        async def reconcile(self, key: Key) -> Result:
            assert key.name not in busy
            busy.append(key.name)
            together.append(len(busy))
            await asyncio.sleep(1)
            busy.remove(key.name)
            return DONE

    async def scenario() -> dict[str, float]:
        bench = Bench(Slow(), workers=3)

        async def add() -> None:
            for number in range(40):
                bench.queue.add((A, B)[number % 2])
                await asyncio.sleep(0.3)

        adding = asyncio.create_task(add())
        await bench.for_(60)
        await adding
        return bench.results()

    assert set(in_virtual_time(scenario())) == {"done"}
    assert max(together) == 2


def test_every_line_says_which_reconcile_it_belongs_to() -> None:
    async def speak() -> Result:
        log.info("inside")
        await asyncio.create_task(_deeper())
        return DONE

    async def _deeper() -> None:
        log.info("deeper")

    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        _looks(speak, ValueError("broken"))
        assert {line["controller"] for line in lines} == {"scripted"}
        assert {line["key"] for line in lines} == {"n/a"}
        first, second = ([line for line in lines if line["event"] == event] for event in ("inside", "deeper"))
        assert first[0]["reconcile"] == second[0]["reconcile"] != ""


def test_what_passes_is_a_line_and_what_does_not_comes_with_its_trace() -> None:
    with capture_logs() as lines:
        _looks(Conflict(409, "Conflict", "somebody else wrote first"), ValueError("broken"))
    passing, broken = lines
    assert (passing["log_level"], "exc_info" in passing) == ("info", False)
    assert (broken["log_level"], broken["error"], "exc_info" in broken) == ("error", "broken", True)


def test_what_is_not_found_is_a_line_until_it_was_missed_for_long() -> None:
    with capture_logs() as lines:
        _looks(*[NotFound(404, "NotFound", 'deployments.apps "web" not found')] * (TRIES_UNTIL_MISSED + 1))
    assert [line["log_level"] for line in lines] == ["info"] * TRIES_UNTIL_MISSED + ["error"]


def test_a_patch_for_another_object_of_the_same_name_is_a_conflict() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"}]
    answer = {"kind": "Status", "reason": "Invalid", "code": 422, "message": "is invalid", "details": {"causes": causes}}
    assert isinstance(error_from(422, json.dumps(answer).encode()), Conflict)


def test_a_failure_is_logged_with_its_trace_once_and_again_when_it_is_another_one() -> None:
    def failing(text: str) -> Step:
        return ValueError(text)

    async def scenario() -> None:
        bench = Bench(Scripted(failing("a"), failing("a"), failing("b"), DONE, failing("b")))
        bench.queue.add(A)
        await bench.for_(1)
        bench.queue.add(A)
        await bench.for_(1)

    with capture_logs() as logs:
        in_virtual_time(scenario())
    assert [bool(line["exc_info"]) for line in logs if "failures" in line] == [True, False, True, True]
