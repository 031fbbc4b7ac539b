"""`herder up` itself dies, or is told to leave its guests: they run on, and the next one takes them up as they are."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.program import is_running, until
from tests.e2e.qemu.counters import HERE, INSTANCES, MACHINES, PATIENCE, Counters, counters
from tests.e2e.qemu.test_up import down
from tests.engines.resources import PODS

NAME = "web"
LOAD = "rate=20"


def _processes(data: Path) -> list[int]:
    """Every QEMU of this data directory."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(folder / "cwd").startswith(str(data.resolve() / "nodes")):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def _kill(herd: Counters) -> None:
    assert herd.up.end(signal.SIGKILL) == -signal.SIGKILL


def _hang_up(herd: Counters) -> None:
    """As the kernel says it when the terminal is closed, or ssh loses its connection."""
    assert herd.up.end(signal.SIGHUP) == 0
    assert "1 guest runs on; the next `herder up` finds it again" in herd.up.out


def _keep_guests(herd: Counters) -> None:
    ended = down(herd.up.data, "--keep-guests")
    assert (ended.returncode, ended.stderr) == (0, "")
    about = f"herder has stopped; what is stored stays in {herd.up.data}\n"
    assert ended.stdout == "1 guest runs on; the next `herder up` finds it again\n" + about
    again = down(herd.up.data, "--keep-guests")
    assert again.stdout == f"1 guest runs on; the next `herder up` finds it again\nno herder runs in {herd.up.data}\n"


@pytest.mark.parametrize("end", [_kill, _hang_up, _keep_guests], ids=["killed", "its terminal is closed", "down --keep-guests"])
async def test_guests_outlive_herder_and_the_next_one_takes_them_up_as_they_are(
    tmp_path: Path, guest: Path, end: Callable[[Counters], None]
) -> None:
    async with counters(tmp_path, guest, nodes=2) as herd:
        await herd.make(NAME, LOAD)
        before = await herd.runs(NAME)
        (process,) = _processes(herd.up.data)
        (pod,) = await herd.all(PODS)
        children = herd.up.children()
        end(herd)
        until(lambda: not any(is_running(pid) for pid in children.values()), "its processes outlive it", PATIENCE)
        assert _processes(herd.up.data) == [process]
        # It counts while nobody looks after it.
        await herd.counts(NAME)
        herd.start_again()
        after = await herd.runs(NAME)
        assert _processes(herd.up.data) == [process]
        assert [one["metadata"]["uid"] for one in await herd.all(PODS)] == [pod["metadata"]["uid"]]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        herd.witness.assert_one_counter(NAME)
        # It is kept as before: told to end, it ends.
        (await herd.api.delete(MACHINES, NAME, HERE)).ok  # noqa: B018
        await herd.nothing_is_left()
        assert await herd.all(INSTANCES) == []


async def test_no_guest_holds_what_the_next_herder_needs(tmp_path: Path, guest: Path) -> None:
    async with counters(tmp_path, guest, nodes=1) as herd:
        await herd.make(NAME, LOAD)
        await herd.runs(NAME)
        (process,) = _processes(herd.up.data)
        held = [os.readlink(one) for one in Path(f"/proc/{process}/fd").iterdir()]
        assert str(herd.up.data.resolve() / "lock") not in held, held


async def test_guests_of_nodes_that_are_not_started_again_are_named(tmp_path: Path, guest: Path) -> None:
    async with counters(tmp_path, guest, nodes=2) as herd:
        await herd.make(NAME, LOAD)
        await herd.runs(NAME)
        node = (await herd.all(PODS))[0]["spec"]["nodeName"]
        herd.up.end(signal.SIGKILL)
        herd.start_again("--runtime", "simulated")
        until(lambda: "guests run on whose nodes are not started" in herd.up.err, "nobody was told", PATIENCE)
        assert node in herd.up.err
        assert herd.up.end(signal.SIGTERM) == 0
        assert _processes(herd.up.data) == []


async def test_ctrl_c_ends_guests_whose_agent_is_dead_at_that_moment(tmp_path: Path, guest: Path) -> None:
    async with counters(tmp_path, guest, nodes=1) as herd:
        await herd.make(NAME, LOAD)
        await herd.runs(NAME)
        os.kill(herd.up.child("agents"), signal.SIGKILL)
        assert herd.up.end(signal.SIGINT) == 0
        assert _processes(herd.up.data) == []
