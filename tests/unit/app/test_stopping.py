"""Processes that are told to stop, or whose supervisor is gone."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from herder.app.stopping import LEAVE_GUESTS, Stop, stop_with_parent

TOLD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, LEAVE_GUESTS)


@pytest.fixture
def handlers() -> Iterator[None]:
    """As for a program that somebody started in a terminal, also where the tests run under nohup; and as before in the end."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in TOLD}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "ends_guests"),
    [(signal.SIGINT, True), (signal.SIGTERM, True), (signal.SIGHUP, False), (LEAVE_GUESTS, False)],
    ids=lambda one: one.name if isinstance(one, signal.Signals) else str(one),
)
@pytest.mark.usefixtures("handlers")
async def test_only_an_order_ends_guests(number: signal.Signals, ends_guests: bool) -> None:
    stop = Stop(supervised=False)
    stop.listen()
    stop.listen_to_terminal()
    os.kill(os.getpid(), number)
    async with asyncio.timeout(10):
        await stop.wait()
    assert (stop.is_set(), stop.ends_guests) == (True, ends_guests)


@pytest.mark.usefixtures("handlers")
async def test_the_first_order_counts() -> None:
    stop = Stop(supervised=False)
    stop.listen()
    for number in (LEAVE_GUESTS, signal.SIGTERM):
        os.kill(os.getpid(), number)
        async with asyncio.timeout(10):
            await stop.wait()
    await asyncio.sleep(0)
    assert not stop.ends_guests


@pytest.mark.usefixtures("handlers")
async def test_under_nohup_a_closed_terminal_means_nothing() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop = Stop(supervised=False)
    stop.listen()
    stop.listen_to_terminal()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_child_whose_supervisor_died_before_it_could_be_told_ends_by_itself() -> None:
    follow = stop_with_parent()
    middle = os.fork()
    if middle == 0:
        # Its child has another parent than `follow` expects, as one whose parent died between fork and here.
        child = os.fork()
        if child == 0:
            follow()
            os._exit(0)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert os.waitstatus_to_exitcode(os.waitpid(middle, 0)[1]) == 1
