"""The guest moves between two QEMU processes, and notices nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.guest.conftest import Start
from tests.e2e.guest.machine import PATIENCE, Machine, assert_unbroken
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
# The second is no multiple of 256 KiB.
LAYOUTS = pytest.mark.parametrize(("machine", "memory"), [("q35", "64M"), ("q35", "66564K"), ("pc", "64M")])
LOAD = "rate=50 dirty=64M/s working-set=16M"


@dataclass(frozen=True)
class Pair:
    source: Machine
    target: Machine

    @property
    def socket(self) -> str:
        return f"unix:{self.target.folder / 'migration.socket'}"

    async def set(self, **capabilities: bool) -> None:
        states = [{"capability": name.replace("_", "-"), "state": state} for name, state in capabilities.items()]
        for side in (self.source, self.target):
            await side.do("migrate-set-capabilities", capabilities=states)

    async def begin(self) -> None:
        await self.target.do("migrate-incoming", uri=self.socket)
        await self.source.do("migrate", uri=self.socket)

    async def copy_in_rounds(self, least: int) -> None:
        """Too slow to end at first. Only pages that are copied again show whether QEMU notices that they were written to."""
        await self.source.do("migrate-set-parameters", max_bandwidth=32 << 20, downtime_limit=1)
        await self.begin()
        await eventually(lambda: self._has_copied(least), PATIENCE)
        await self.source.do("migrate-set-parameters", max_bandwidth=1 << 30, downtime_limit=5000)

    async def _has_copied(self, rounds: int) -> bool:
        answer = await self.source.do("query-migrate")
        assert answer.get("status") in {"setup", "active"}, answer
        return answer.get("ram", {}).get("dirty-sync-count", 0) >= rounds

    async def finish(self) -> None:
        """The guest has moved whole, the target has it, and it goes on there."""
        await self.source.migration("completed")
        await self.target.migration("completed")
        await self.target.do("cont")
        await self.target.ticked(10)

    async def check(self) -> None:
        """One guest has said all this, and every page of it is right."""
        await self.target.type("check")
        await self.target.says(r"checked 4096 pages errors=0")
        assert_unbroken(self.source.text + self.target.text)
        assert "boot" not in self.target.text


@asynccontextmanager
async def pair(start: Start, settings: str, machine: str = "q35", memory: str = "64M") -> AsyncGenerator[Pair]:
    async with (
        start(settings=settings, machine=machine, memory=memory) as source,
        start("-S", "-incoming", "defer", settings=settings, machine=machine, memory=memory) as target,
    ):
        yield Pair(source, target)


@LAYOUTS
async def test_a_busy_guest_moves_without_missing_a_tick_or_a_page(start: Start, machine: str, memory: str) -> None:
    async with pair(start, LOAD, machine, memory) as both:
        await both.source.ticked(20)
        await both.copy_in_rounds(4)
        await both.finish()
        await both.check()
        assert (await both.source.do("query-status"))["status"] == "postmigrate"


async def test_it_moves_there_and_back_again(start: Start) -> None:
    """What was written on one side must not be forgotten on the next."""
    async with pair(start, LOAD) as there:
        await there.source.ticked(5)
        await there.begin()
        await there.finish()
        async with start("-S", "-incoming", "defer", settings=LOAD) as home:
            back = Pair(there.target, home)
            await back.begin()
            await back.finish()
            await home.type("check")
            await home.says(r"checked 4096 pages errors=0")
            assert_unbroken(there.source.text + there.target.text + home.text)


async def test_a_guest_too_busy_for_pre_copy_moves_by_post_copy(start: Start) -> None:
    """It runs on the target while most of its memory is still at the source, and waits for the pages that it needs."""
    async with pair(start, LOAD) as both:
        await both.set(postcopy_ram=True)
        await both.source.do("migrate-set-parameters", max_bandwidth=4 << 20, max_postcopy_bandwidth=4 << 20, downtime_limit=1)
        await both.source.ticked(5)
        await both.begin()
        await both.source.migration("active")
        await both.source.do("migrate-start-postcopy")
        await both.source.migration("postcopy-active")
        await both.target.do("cont")
        await both.target.ticked(1)
        assert (await both.source.do("query-migrate"))["status"] == "postcopy-active"
        await both.source.do("migrate-set-parameters", max_postcopy_bandwidth=0)
        done = await both.source.migration("completed")
        assert done["ram"]["postcopy-requests"] > 0
        await both.target.ticked(10)
        await both.check()


async def test_a_cancelled_move_leaves_the_guest_where_it_was(start: Start) -> None:
    async with pair(start, LOAD) as both:
        await both.source.do("migrate-set-parameters", max_bandwidth=4 << 20, downtime_limit=1)
        await both.source.ticked(3)
        await both.begin()
        await both.source.migration("active")
        await both.source.do("migrate_cancel")
        await both.source.migration("cancelled")
        await both.source.ticked(len(both.source.ticks) + 10)
        assert_unbroken(both.source.text)
        assert both.target.text == ""


async def test_it_is_saved_to_a_file_and_goes_on_from_there(start: Start, tmp_path: Path) -> None:
    saved = tmp_path / "memory"
    async with start(settings=LOAD) as first:
        await first.ticked(5)
        await first.do("stop")
        await first.do("migrate", uri=f"file:{saved}")
        await first.migration("completed")
        async with start("-S", "-incoming", "defer", settings=LOAD) as second:
            await second.do("migrate-incoming", uri=f"file:{saved}")
            await second.migration("completed")
            await second.do("cont")
            await second.ticked(10)
            assert_unbroken(first.text + second.text)
