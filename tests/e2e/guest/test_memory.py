"""The memory that the guest dirties and checks."""

from __future__ import annotations

from tests.e2e.guest.conftest import Start
from tests.e2e.guest.machine import assert_unbroken


async def test_it_dirties_as_much_as_it_is_told_to_and_no_more(start: Start) -> None:
    async with start(settings="rate=20 dirty=40M/s working-set=8M") as guest:
        ticks = await guest.ticked(20)
        assert ticks[-1].dirtied >= 1
        assert all(tick.dirtied <= 2 * tick.number + 2 for tick in ticks)
        assert_unbroken(guest.text)


async def test_an_idle_one_dirties_nothing(start: Start) -> None:
    async with start(settings="rate=100") as guest:
        assert {tick.dirtied for tick in await guest.ticked(10)} == {0}


async def test_the_hypervisor_sees_the_pages_get_dirty(start: Start) -> None:
    """QEMU's own measure, by sampling: a guest that writes the same into its pages would not be seen."""
    async with start(settings="dirty=64M/s working-set=32M") as guest:
        await guest.ticked(2)
        await guest.do("calc-dirty-rate", calc_time=1, sample_pages=4096)
        while (answer := await guest.do("query-dirty-rate"))["status"] != "measured":
            await guest.ticked(len(guest.ticks) + 1)
        assert answer["dirty-rate"] >= 1


async def test_a_page_that_went_bad_is_noticed_and_counted_once(start: Start) -> None:
    async with start(settings="rate=100") as guest:
        await guest.ticked(1)
        await guest.type("corrupt")
        await guest.says("bad page 512 of generation 1: word 512 is [0-9a-f]{8} and not [0-9a-f]{8}")
        await guest.says(r"tick \d+ BAD errors=1 dirtied=0M")
        await guest.type("check")
        await guest.says("checked 1024 pages errors=1")


async def test_a_page_that_went_bad_is_noticed_before_it_is_rewritten(start: Start) -> None:
    async with start(settings="dirty=16M/s") as guest:
        await guest.ticked(1)
        await guest.type("corrupt")
        await guest.says(r"tick \d+ BAD errors=1 dirtied=\d+M")


async def test_the_load_can_be_changed_while_it_runs(start: Start) -> None:
    async with start(settings="rate=50") as guest:
        await guest.ticked(1)
        await guest.type("dirty=64M/s")
        await guest.says("settings rate=50 dirty=64M/s working-set=4M")
        await guest.says(r"tick \d+ ok errors=0 dirtied=[1-9]\d*M")
