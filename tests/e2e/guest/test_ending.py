"""The console, the power button, and all the ways in which a guest ends."""

from __future__ import annotations

import re

import pytest

from tests.e2e.guest.conftest import Start
from tests.e2e.guest.test_counting import MACHINES


@MACHINES
async def test_the_power_button_switches_it_off(start: Start, machine: str) -> None:
    async with start(machine=machine) as guest:
        await guest.ticked(2)
        await guest.do("system_powerdown")
        assert (await guest.event("SHUTDOWN"))["reason"] == "guest-shutdown"
        assert await guest.ended() == 0
        assert guest.text.endswith("powerdown\n")


async def test_the_power_button_wakes_a_guest_that_sleeps_long(start: Start) -> None:
    async with start(settings="rate=1") as guest:
        await guest.says("settings .*")
        await guest.do("system_powerdown")
        assert await guest.ended() == 0


async def test_a_guest_can_ignore_the_power_button(start: Start) -> None:
    async with start(settings="power-button=ignore") as guest:
        await guest.ticked(1)
        await guest.do("system_powerdown")
        await guest.says("powerdown ignored")
        await guest.ticked(len(guest.ticks) + 2)


async def test_it_switches_itself_off_when_told_to(start: Start) -> None:
    async with start(settings="rate=50 exit-after=3") as guest:
        assert (await guest.event("SHUTDOWN"))["reason"] == "guest-shutdown"
        assert await guest.ended() == 0
        assert len(guest.ticks) == 3


async def test_a_crash_looks_like_a_reset(start: Start) -> None:
    """A triple fault resets the machine; with -no-reboot it ends."""
    async with start(settings="rate=50 crash-after=3") as guest:
        shutdown = await guest.event("SHUTDOWN")
        assert (shutdown["guest"], shutdown["reason"]) == (True, "guest-reset")
        assert guest.text.endswith("crash\n")


async def test_a_panic_is_reported_to_the_hypervisor(start: Start) -> None:
    async with start("-device", "pvpanic", settings="rate=50 panic-after=3") as guest:
        assert (await guest.event("GUEST_PANICKED"))["action"]


async def test_a_hung_guest_runs_on_and_says_nothing(start: Start) -> None:
    async with start(settings="rate=100 hang-after=3") as guest:
        await guest.says("hang")
        await guest.do("system_powerdown")
        assert (await guest.do("query-status"))["status"] == "running"
        assert guest.text.endswith("hang\n")


async def test_a_reboot_is_another_boot(start: Start) -> None:
    async with start("-action", "reboot=reset", settings="rate=50") as guest:
        await guest.ticked(1)
        await guest.type("reboot")
        await guest.event("RESET")
        await guest.says(r"reboot(?s:.*)tick 1 ok errors=0 dirtied=0M")
        marks = re.findall("^boot ([0-9a-f]+)$", guest.text, re.MULTILINE)
        assert len(set(marks)) == 2


@pytest.mark.parametrize("machine", ["q35", "pc"])
async def test_it_answers_what_is_typed(start: Start, machine: str) -> None:
    async with start(machine=machine, settings="rate=1") as guest:
        await guest.says("settings .*")
        await guest.type("hello")
        await guest.says("you said: hello")


async def test_a_long_line_comes_through_whole(start: Start) -> None:
    async with start() as guest:
        await guest.ticked(1)
        await guest.type("word " * 40 + "end")
        await guest.says("you said: " + "word " * 40 + "end")
