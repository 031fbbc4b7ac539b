"""What an agent finds on its disk may be damaged in any way. No guest runs twice for that, and no other one is touched."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from herder.api import reasons
from herder.api.guest import MigrationOrder
from herder.api.kinds.migration_state import PolicySettings
from herder.api.world import RealWorld
from herder.nodes.moving import DiskNotes, Mover, Switchboard
from herder.nodes.moving.notes import COMING, LEAVING, Coming, Leaving
from herder.nodes.runtimes.qemu import RunAs, ask
from herder.nodes.runtimes.qemu.facts import Facts
from herder.nodes.runtimes.qemu.record import Folder
from tests.e2e.program import is_running
from tests.e2e.qemu.node import Node


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _zeros(path: Path) -> None:
    """As a file system leaves it behind a power failure."""
    path.write_bytes(bytes(4096))


def _other(path: Path) -> None:
    path.write_bytes(b'["something", "else"]')


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("something")


def _loop(path: Path) -> None:
    """Cannot be opened, not even by root."""
    path.unlink()
    path.symlink_to(path)


DAMAGES: list[Callable[[Path], None]] = [_cut, _empty, _zeros, _other, _folder, _loop]
damages = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))


@pytest.fixture
async def neighbour(node: Node) -> AsyncIterator[str]:
    """Another guest: whatever happens to one file, it goes on."""
    guest = await node.start()
    pid = node.pid(guest)
    yield guest
    assert (node.status(guest).state, node.pid(guest), is_running(pid)) == ("Running", pid, True)


@damages
async def test_a_guest_whose_record_is_damaged_is_ended_and_said_and_what_is_left_of_it_is_kept(
    node: Node, neighbour: str, damage: Callable[[Path], None]
) -> None:
    guest = await node.start()
    pid, folder = node.pid(guest), node.folder / "guests" / guest
    order = node.order_of(guest)
    await node.runtime.close()
    damage(folder / "guest.json")
    await node.reopen()
    status = node.status(guest)
    assert not is_running(pid)
    assert (status.state, status.reason) == ("Failed", reasons.GUEST_RECORD_UNREADABLE)
    assert "guest.json, which says what this guest is, cannot be read" in status.message and "was ended" in status.message
    await node.runtime.start(order)
    assert node.status(guest).state == "Failed", "it is known here, and has ended: it is not started again"
    await node.reopen()
    assert node.status(guest).reason == reasons.GUEST_RECORD_UNREADABLE, "the next agent does not make it up either"
    assert Folder(folder).why_unreadable(), "nothing is written over it"
    await node.runtime.remove(guest)
    assert not folder.exists()
    assert {"guest.json", "qemu.log"} <= {path.name for path in (node.folder / "unreadable" / guest).iterdir()}


async def test_a_guest_whose_record_is_gone_is_ended_and_said(node: Node, neighbour: str) -> None:
    guest = await node.start()
    pid = node.pid(guest)
    await node.runtime.close()
    (node.folder / "guests" / guest / "guest.json").unlink()
    await node.reopen()
    assert not is_running(pid)
    assert (node.status(guest).state, node.status(guest).reason) == ("Failed", reasons.GUEST_RECORD_UNREADABLE)
    assert "guest.json, which says what this guest is, is gone" in node.status(guest).message


async def test_a_guest_without_any_readable_file_is_found_by_its_folder_and_ended(node: Node, neighbour: str) -> None:
    guest = await node.start()
    pid, folder = node.pid(guest), node.folder / "guests" / guest
    await node.runtime.close()
    for name in ("guest.json", "process.json"):
        _zeros(folder / name)
    await node.reopen()
    assert not is_running(pid)
    assert node.status(guest).reason == reasons.GUEST_RECORD_UNREADABLE


@damages
async def test_a_guest_whose_process_is_not_known_any_more_is_found_by_its_folder(
    node: Node, neighbour: str, damage: Callable[[Path], None]
) -> None:
    guest = await node.start()
    pid, file = node.pid(guest), node.folder / "guests" / guest / "process.json"
    await node.runtime.close()
    damage(file)
    await node.reopen()
    assert (node.status(guest).state, is_running(pid)) == ("Running", True)
    await node.runtime.remove(guest)
    assert not is_running(pid)


async def test_a_guest_whose_process_file_names_another_is_found_by_its_folder(node: Node, neighbour: str) -> None:
    guest = await node.start()
    pid, folder = node.pid(guest), node.folder / "guests"
    await node.runtime.close()
    stale = (folder / guest / "process.json").read_bytes().replace(b'"start_time":', b'"start_time":1')
    (folder / guest / "process.json").write_bytes(stale)
    await node.reopen()
    assert (node.status(guest).state, node.pid(guest), is_running(pid)) == ("Running", pid, True)


@damages
@pytest.mark.parametrize("name", ["console.log", "qemu.log"])
async def test_damaged_logs_do_not_end_a_guest(node: Node, neighbour: str, damage: Callable[[Path], None], name: str) -> None:
    guest = await node.start()
    await node.runtime.close()
    damage(node.folder / "guests" / guest / name)
    await node.reopen()
    assert node.status(guest).state == "Running"
    await node.runtime.remove(guest)


@damages
@pytest.mark.parametrize("kind", [LEAVING, COMING])
async def test_a_guest_whose_note_of_a_move_is_damaged_is_ended_and_said(
    node: Node, neighbour: str, damage: Callable[[Path], None], kind: str
) -> None:
    """Handed over, or not: it must not run here, and the agent goes on with all others."""
    guest = await node.start()
    pid = node.pid(guest)
    notes = DiskNotes(node.folder / "moves")
    order = MigrationOrder(migration="m", settings=PolicySettings(), target_pod="t", address="nowhere")
    await notes.write(guest, Leaving(order=order) if kind == LEAVING else Coming(migration="m", token="k", granted=True))
    damage(node.folder / "moves" / f"{guest}.{kind}")
    await node.reopen()
    mover = Mover("node", node.runtime, DiskNotes(node.folder / "moves"), Switchboard("test").link("node"), RealWorld())
    await mover.open(lambda guest: None)
    try:
        assert not is_running(pid)
        shown = mover.shown(guest, node.runtime.status(guest))
        assert shown is not None and (shown.state, shown.reason) == ("Failed", reasons.GUEST_RECORD_UNREADABLE)
        assert f"{guest}.{kind}: cannot be read" in shown.message
        assert guest in mover.guests()
        assert mover.shown(neighbour, node.runtime.status(neighbour)) == node.runtime.status(neighbour)
        await mover.forget(guest)
        assert [path.name for path in (node.folder / "moves" / "unreadable").iterdir()] == [f"{guest}.{kind}"]
    finally:
        await mover.close()


@damages
async def test_what_qemu_can_do_is_asked_again_where_it_cannot_be_read(
    qemu: str, run_as: RunAs | None, facts: Facts, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    kept = tmp_path / "qemu.json"
    kept.write_bytes(bytes(64))
    damage(kept)
    assert await ask(qemu, run_as, kept) == facts
    if kept.is_dir():
        shutil.rmtree(kept)
