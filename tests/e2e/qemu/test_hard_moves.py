"""Guests that write faster than their memory is copied, under each way out; and what a cancel or a death does in each phase."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.qemu import ask
from tests.conftest import EngineMissing
from tests.e2e.guest.machine import PATIENCE
from tests.e2e.program import is_running
from tests.e2e.qemu.moves import LOAD, assert_one_guest_said, check_memory, copied, is_moved, prepared, resumed
from tests.e2e.qemu.node import Node
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
# The guest writes 64 MiB a second.
TOO_SLOW = PolicySettings(bandwidth_per_migration="8Mi", max_downtime_ms=300)
POST_COPY = PolicySettings(bandwidth_per_migration="8Mi", max_downtime_ms=300, allow_post_copy=True)


class Hard:
    """A guest on its way that will not get there by itself."""

    def __init__(self, here: Node, there: Node, source: str, target: str) -> None:
        self.here, self.there = here, there
        self.source, self.target = source, target
        self.pages = 4096

    async def does_not_converge(self) -> None:
        await eventually(self._went_round, PATIENCE)
        assert self.here.moved(self.source).state == "UnderWay"

    async def _went_round(self) -> bool:
        progress = self.here.moved(self.source).progress
        return progress is not None and (progress.iteration or 0) >= 4

    async def goes_on_at_the_source(self) -> None:
        await self.here.ticked(self.source, len(await self.here.ticks(self.source)) + 5)
        assert self.here.status(self.source).state == "Running"
        await check_memory(self.here, self.source, self.pages)
        await assert_one_guest_said((self.here, self.source))
        assert await self.there.text(self.target) == ""

    async def goes_on_at_the_target(self) -> None:
        await self.there.ticked(self.target, 10)
        await check_memory(self.there, self.target, self.pages)
        await assert_one_guest_said((self.here, self.source), (self.there, self.target))

    async def in_phase(self, phase: str) -> None:
        await copied(self.here, self.source)
        if phase == "paused":
            await self.here.runtime.pause(self.source)
        elif phase == "postcopy":
            await self.here.runtime.start_post_copy(self.source)
            await self.here.becomes(self.source, "HandedOver")
            await resumed(self.there, self.target)
            await self.there.ticked(self.target, 1)
            assert self.here.moved(self.source).state == "PostCopy"


async def _begin(here: Node, there: Node, guest: Path, settings: PolicySettings, load: str = LOAD) -> Hard:
    source = await here.start(load)
    await here.ticked(source, 20)  # else there is little to copy
    target, address = await prepared(here, there, guest, source, settings)
    await here.runtime.migrate_out(source, "m", address, settings)
    return Hard(here, there, source, target)


@pytest.fixture
async def hard(node: Node, other: Node, guest: Path) -> Hard:
    return await _begin(node, other, guest, TOO_SLOW)


@pytest.fixture
async def hard_by_post_copy(tmp_path: Path, qemu: str, guest: Path) -> AsyncIterator[Hard]:
    """As root, told so: an unprivileged user needs the kernel's leave for it."""
    facts = await ask(qemu, None)
    if facts.cannot_post_copy:
        raise EngineMissing("post-copy needs root, or vm.unprivileged_userfaultfd=1")
    here, there = Node(tmp_path / "here", facts, None, guest), Node(tmp_path / "there", facts, None, guest)
    await here.open()
    await there.open()
    yield await _begin(here, there, guest, POST_COPY)
    await here.end()
    await there.end()


async def test_aborted_it_goes_on_where_it_was(hard: Hard) -> None:
    await hard.does_not_converge()
    await hard.here.runtime.cancel(hard.source)
    assert hard.here.moved(hard.source).state == "Cancelled"
    await hard.goes_on_at_the_source()


async def test_slowed_down_it_gets_there(node: Node, other: Node, guest: Path) -> None:
    """QEMU takes its time: it slows it down by ten percent more in every other round. Slowed down by 99 % the guest still runs for
    10 ms of each second, in which it writes some 4 MB here: the downtime is enough for more than that, and not for all 8 MB."""
    settings = PolicySettings(bandwidth_per_migration="12Mi", max_downtime_ms=500, allow_auto_converge=True)
    hard = await _begin(node, other, guest, settings, LOAD.replace("16M", "8M"))
    hard.pages = 2048
    await is_moved(node, hard.source, "Completed", 3 * PATIENCE)
    progress = node.moved(hard.source).progress
    assert progress is not None and (progress.iteration or 0) >= 3 and (progress.throttle_percent or 0) >= 20
    await resumed(other, hard.target)
    await hard.goes_on_at_the_target()


async def test_paused_it_gets_there(hard: Hard) -> None:
    await hard.does_not_converge()
    await hard.here.runtime.pause(hard.source)
    assert hard.here.status(hard.source).state == "Running", "its owner did not pause it"
    said = await hard.here.text(hard.source)
    await is_moved(hard.here, hard.source, "Completed")
    progress = hard.here.moved(hard.source).progress
    assert progress is not None and progress.mode == "Paused"
    assert await hard.here.text(hard.source) == said
    await resumed(hard.there, hard.target)
    await hard.goes_on_at_the_target()


async def test_by_post_copy_it_runs_there_before_its_memory_is_there(hard_by_post_copy: Hard) -> None:
    hard = hard_by_post_copy
    await hard.does_not_converge()
    await hard.here.runtime.start_post_copy(hard.source)
    await hard.here.becomes(hard.source, "HandedOver")
    await resumed(hard.there, hard.target)
    await hard.there.ticked(hard.target, 3)
    moved = hard.here.moved(hard.source)
    assert moved.state == "PostCopy" and moved.progress is not None and moved.progress.mode == "PostCopy"
    await hard.here.runtime.cancel(hard.source)  # forbidden by now: the guest would be lost
    await is_moved(hard.here, hard.source, "Completed")
    await hard.goes_on_at_the_target()


async def test_a_post_copy_is_found_again_by_both_agents(hard_by_post_copy: Hard) -> None:
    hard = hard_by_post_copy
    await hard.in_phase("postcopy")
    await hard.here.reopen()
    await hard.there.reopen()
    assert (hard.here.status(hard.source).state, hard.there.status(hard.target).state) == ("HandedOver", "Running")
    await is_moved(hard.here, hard.source, "Completed")
    await hard.goes_on_at_the_target()


async def test_post_copy_that_ended_without_its_agent_is_over_for_the_next(hard_by_post_copy: Hard) -> None:
    hard = hard_by_post_copy
    await hard.in_phase("postcopy")
    await hard.here.runtime.close()
    pid = hard.here.pid(hard.source)
    await hard.goes_on_at_the_target()
    await hard.here.reopen()
    await is_moved(hard.here, hard.source, "Completed")
    await eventually(lambda: _gone(pid), PATIENCE)


async def test_a_cancel_of_a_paused_move_lets_it_go_on(hard: Hard) -> None:
    await hard.in_phase("paused")
    await hard.here.runtime.cancel(hard.source)
    await hard.goes_on_at_the_source()


@pytest.mark.parametrize("phase", ["precopy", "paused"])
async def test_a_target_that_dies_before_the_hand_over_changes_nothing(hard: Hard, phase: str) -> None:
    await hard.in_phase(phase)
    os.kill(hard.there.pid(hard.target), signal.SIGKILL)
    await is_moved(hard.here, hard.source, "Failed")
    assert hard.here.moved(hard.source).why
    await hard.goes_on_at_the_source()
    assert (await hard.there.becomes(hard.target, "Failed")).message.startswith("the memory did not arrive")


@pytest.mark.parametrize("phase", ["precopy", "paused"])
async def test_a_source_that_dies_before_the_hand_over_leaves_nobody_running(hard: Hard, phase: str) -> None:
    await hard.in_phase(phase)
    os.kill(hard.here.pid(hard.source), signal.SIGKILL)
    await hard.here.becomes(hard.source, "Crashed")
    await hard.there.becomes(hard.target, "Failed")
    assert not hard.there.status(hard.target).has_memory
    await hard.there.runtime.resume(hard.target)
    assert await hard.there.text(hard.target) == ""


async def test_a_target_that_dies_in_post_copy_does_not_wake_its_source(hard_by_post_copy: Hard) -> None:
    hard = hard_by_post_copy
    await hard.in_phase("postcopy")
    said = await hard.here.text(hard.source)
    os.kill(hard.there.pid(hard.target), signal.SIGKILL)
    await is_moved(hard.here, hard.source, "Failed")
    assert hard.here.status(hard.source).state == "HandedOver"
    await hard.here.runtime.resume(hard.source)
    await asyncio.sleep(0.3)
    assert await hard.here.text(hard.source) == said


async def test_a_source_that_dies_in_post_copy_takes_the_guest_along(hard_by_post_copy: Hard) -> None:
    hard = hard_by_post_copy
    await hard.in_phase("postcopy")
    os.kill(hard.here.pid(hard.source), signal.SIGKILL)
    assert "before all its memory was here" in (await hard.there.becomes(hard.target, "Crashed")).message
    await is_moved(hard.here, hard.source, "Failed")
    assert hard.here.status(hard.source).state == "HandedOver"


async def _gone(pid: int) -> bool:
    return not is_running(pid)
