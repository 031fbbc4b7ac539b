"""Whatever dies at whatever step of a move of a real guest: at most one counter ever advances, and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import MigrationOrder, MigrationReport
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.moving import Switchboard
from herder.nodes.runtimes.base import Refused
from herder.nodes.runtimes.qemu import RunAs, ask
from herder.nodes.runtimes.qemu.facts import Facts
from tests.conftest import EngineMissing
from tests.e2e.guest.machine import PATIENCE, assert_unbroken, ticks_of
from tests.e2e.qemu.node import order
from tests.e2e.qemu.two_agents import Agent, Steps, between
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
LOAD = "rate=100 dirty=16M/s working-set=8M"
VICTIMS = ("source agent", "target agent", "source QEMU", "target QEMU")
COPIES = "its memory is copied"
# It does not get there by itself.
POST_COPY = PolicySettings(bandwidth_per_migration="8Mi", max_downtime_ms=1, allow_post_copy=True)
HERE, THERE, MIGRATION = "here", "there", "migration-1"


class Play:
    """One move from here to there."""

    def __init__(self, folder: Path, facts: Facts, run_as: RunAs | None, guest: Path, settings: PolicySettings) -> None:
        self.steps = Steps()
        self._settings = settings
        board = Switchboard()
        self.here = Agent(HERE, folder, facts, run_as, board, self.steps)
        self.there = Agent(THERE, folder, facts, run_as, board, self.steps)
        board.around.append(between({HERE: self.here, THERE: self.there}, self.steps))
        self._address = board.address(THERE)
        self._kernel = guest
        self.source = order(guest, LOAD, memory="32Mi")
        self.target = self.source
        self.cancelled = False

    async def begin(self) -> None:
        await self.here.open()
        await self.there.open()
        await self.here.runtime.start(self.source)
        status = self.here.runtime.status(self.source.guest)
        assert status is not None
        self.target = order(self._kernel, LOAD, memory="32Mi", incoming=status.started)
        await self.advances(self.here, self.source.guest)

    def happens(self, victim: str) -> None:
        if victim == "source agent":
            self.here.crash()
        elif victim == "target agent":
            self.there.crash()
        elif victim == "source QEMU":
            self.here.kill(self.source.guest)
        else:
            self.there.kill(self.target.guest)

    async def until_over(self) -> str:
        """As a controller sees to it: where the guest is in the end."""
        end = await eventually(self._look, 3 * PATIENCE)
        assert end
        return end

    async def _look(self) -> str | None:
        with contextlib.suppress(asyncio.CancelledError):
            return await self._conclude()
        # It died of what it was asked to do.
        await self.here.up.wait()
        await self.there.up.wait()
        return None

    async def _conclude(self) -> str | None:
        if not self.there.up.is_set() or not self.here.up.is_set():
            return None
        told, theirs = self.report(self.here, self.source.guest), self.report(self.there, self.target.guest)
        if told is not None and told.failed:
            return "stayed"
        if theirs is not None and theirs.taken_over and told is not None and told.completed:
            return "moved"
        if told is not None and told.completed and self.there.has_ended(self.target.guest):
            return "lost"
        await self._prepare()
        if theirs is None and not self.cancelled:
            return None
        if self.there.has_ended(self.target.guest):
            self.cancelled = True
        await self.here.mover.look(self.source_pod())
        moved = self.here.runtime.moved(self.source.guest)
        if moved is not None and moved.state == "UnderWay" and COPIES not in self.steps.reached:
            self.steps.reach(COPIES)
        if moved is not None and moved.state == "UnderWay" and self._settings.allow_post_copy:
            await self.here.runtime.start_post_copy(self.source.guest)
        return None

    async def _prepare(self) -> None:
        if not self.cancelled and not self.there.mover.is_prepared(self.target.guest):
            wanted = MigrationOrder(migration=MIGRATION, settings=self._settings, source_node=HERE)
            try:
                await self.there.mover.prepare(_pod(self.target.guest, wanted), self.target)
            except Refused:
                self.cancelled = True

    def source_pod(self, *, ordered: bool = True) -> Pod:
        wanted = MigrationOrder(
            migration=MIGRATION,
            settings=self._settings,
            target_pod=self.target.guest,
            target_node=THERE,
            address=self._address,
            cancelled=self.cancelled,
        )
        return _pod(self.source.guest, wanted if ordered else None)

    def report(self, agent: Agent, guest: str) -> MigrationReport | None:
        return agent.mover.moving(guest).report

    async def text(self, agent: Agent, guest: str) -> str:
        path = agent.folder / "guests" / guest / "console.log"
        return path.read_text(errors="replace").replace("\r", "") if path.exists() else ""

    async def advances(self, agent: Agent, guest: str, by: int = 5, *, may_end: bool = False) -> None:
        before = len(ticks_of(await self.text(agent, guest)))

        async def look() -> bool:
            return len(ticks_of(await self.text(agent, guest))) >= before + by or (may_end and agent.has_ended(guest))

        await eventually(look, PATIENCE)

    async def check(self, end: str, victim: str) -> None:
        """One guest has said all this, and it goes on where it should."""
        at = (self.here, self.source.guest) if end == "stayed" else (self.there, self.target.guest)
        # That a QEMU was killed may be noticed a moment later.
        await self.advances(*at, may_end=victim.endswith("QEMU"))
        here, there = await self.text(self.here, self.source.guest), await self.text(self.there, self.target.guest)
        said = here + there if there else here
        assert_unbroken(said[: said.rfind("\n") + 1])
        assert "boot" not in there
        assert end != "lost" or victim.endswith("QEMU"), "nobody has killed the guest"

    async def end(self) -> None:
        """What a controller takes away. Nothing is left then."""
        await self.here.up.wait()
        await self.there.up.wait()
        await self.here.mover.look(self.source_pod(ordered=False))
        for agent, guest in ((self.here, self.source.guest), (self.there, self.target.guest)):
            await agent.runtime.remove(guest)
            await agent.mover.forget(guest)
            await agent.close()
            assert list((agent.folder / "guests").iterdir()) == []
            assert not (agent.folder / "moves").exists() or list((agent.folder / "moves").iterdir()) == []
            assert _processes_in(agent.folder) == []


def _pod(uid: str, wanted: MigrationOrder | None) -> Pod:
    annotations = {labels.MIGRATION: msgspec.json.encode(wanted).decode()} if wanted is not None else {}
    metadata: dict[str, Any] = {"name": "web", "namespace": "default", "uid": uid, "annotations": annotations}
    return msgspec.convert({"metadata": metadata, "spec": {}, "status": {}}, Pod)


def _processes_in(folder: Path) -> list[str]:
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(folder) in str((entry / "cwd").readlink()):
                found.append((entry / "cmdline").read_text())
    return found


About = tuple[Facts, RunAs | None, Path, PolicySettings]


async def _play(folder: Path, about: About, victim: str, number: int) -> list[str]:
    """The steps that were reached."""
    folder.mkdir()
    play = Play(folder, *about)
    play.steps.at(number, lambda: play.happens(victim))
    await play.begin()
    try:
        end = await play.until_over()
        await play.check(end, victim)
    except (AssertionError, TimeoutError) as problem:
        problem.add_note(f"{victim} died at step {number} of {play.steps.reached}")
        raise
    finally:
        await play.end()
    return play.steps.reached


async def test_a_move_that_nothing_happens_to(tmp_path: Path, facts: Facts, run_as: RunAs | None, guest: Path) -> None:
    steps = await _play(tmp_path / "play", (facts, run_as, guest, PolicySettings()), "nobody", -1)
    assert "there has resumed" in steps and "here note HandedOver written" in steps


@pytest.mark.parametrize("victim", VICTIMS)
async def test_at_most_one_counter_advances_whatever_dies(
    tmp_path: Path, facts: Facts, run_as: RunAs | None, guest: Path, victim: str
) -> None:
    assert await _at_every_step(tmp_path, (facts, run_as, guest, PolicySettings()), victim) >= 15


@pytest.mark.parametrize("victim", VICTIMS)
async def test_at_most_one_counter_advances_whatever_dies_in_post_copy(tmp_path: Path, qemu: str, guest: Path, victim: str) -> None:
    """As root, told so: an unprivileged user needs the kernel's leave for it. What comes before the copy is the same as without."""
    facts = await ask(qemu, None)
    if facts.cannot_post_copy:
        raise EngineMissing("post-copy needs root, or vm.unprivileged_userfaultfd=1")
    assert await _at_every_step(tmp_path, (facts, None, guest, POST_COPY), victim, COPIES) >= 8


async def _at_every_step(folder: Path, about: About, victim: str, since: str = "") -> int:
    """How many there were."""
    steps = await _play(folder / "nothing", about, "nobody", -1)
    first = number = steps.index(since) if since else 0
    while number < len(await _play(folder / str(number), about, victim, number)):
        number += 1
    return number - first
