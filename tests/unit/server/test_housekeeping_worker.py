"""The worker of the housekeeping: whatever fails however often, the others get their turn."""

import asyncio

import pytest
from structlog.testing import capture_logs

from herder.server import status
from herder.server.housekeeping import worker as module
from herder.server.housekeeping.worker import Worker

TOO_OFTEN = 1_100  # 2.0 ** 1024 is more than a float holds


async def test_a_key_that_fails_more_than_a_thousand_times_is_tried_again_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY", 0.0)
    tries = 0
    served = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal tries
        if key == "other":
            served.set()
            return
        tries += 1
        if tries == TOO_OFTEN:
            worker.add("other")
        raise LookupError("as always")

    worker = Worker[str]("test", work)
    worker.add("broken")
    running = asyncio.create_task(worker.run())
    waiting = asyncio.create_task(served.wait())
    await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=60)
    assert not running.done(), running.exception()
    assert served.is_set()
    for task in (running, waiting):
        task.cancel()
    await asyncio.wait([running, waiting])


async def test_what_is_gone_when_it_is_written_is_no_warning_unless_it_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY", 0.0)
    tries, over = 0, asyncio.Event()

    async def work(key: str) -> None:
        nonlocal tries
        tries += 1
        if tries == module.TRIES_UNTIL_MISSED + 2:
            over.set()
            return
        raise status.ApiError(404, "NotFound", "it is gone")

    worker = Worker[str]("test", work)
    worker.add("gone")
    with capture_logs() as logs:
        running = asyncio.create_task(worker.run())
        await asyncio.wait_for(over.wait(), 60)
    running.cancel()
    await asyncio.wait([running])
    assert [line["log_level"] for line in logs] == ["info"] * module.TRIES_UNTIL_MISSED + ["warning"]
