"""Memory of real guests in a file: whole or not at all, used once, and only by the guest that it is of. Whatever dies on the way,
the guest goes on, or is saved, or boots; its counter never runs backwards, and no number comes twice."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.api import reasons
from herder.api.guest import MemorySource, SavedGuest
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.runtimes.base import Busy, FilesVolume, FileVolume, Order, Refused, Unfit, Volume
from herder.nodes.runtimes.qemu import QemuRuntime, saving
from herder.nodes.runtimes.qemu.guest import Guest
from herder.nodes.runtimes.qemu.memory_file import MemoryFile
from tests.e2e.qemu.moves import LOAD, SLOW, assert_one_guest_said, check_memory, copied
from tests.e2e.qemu.node import Node, order
from tests.engines.waiting import eventually

pytestmark = pytest.mark.usefixtures("migrations")
INSTANCE = "11111111-2222"


class Killed(BaseException):
    """The agent is no more: nothing that it would have done afterwards is done."""


def nothing(done: int, total: int) -> None:
    pass


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    folder = tmp_path / "volume"
    folder.mkdir()
    return folder / "memory"


async def save(node: Node, guest: str, memory: Path) -> SavedGuest:
    return await node.runtime.save(guest, INSTANCE, memory, nothing)


def from_memory(guest: Path, pod: str, saved: SavedGuest, volumes: dict[str, Volume] | None = None) -> Order:
    """Of another instance of the same machine."""
    made = order(guest, LOAD, memory="80Mi", volumes=volumes)
    instance = msgspec.structs.replace(made.definition.instance, uid="3333-4444")
    source = MemorySource(claim="web-memory", pod=pod, saved=saved)
    return msgspec.structs.replace(made, definition=msgspec.structs.replace(made.definition, instance=instance, memory=source))


async def started(node: Node, volumes: dict[str, Volume] | None = None) -> str:
    first = await node.start(LOAD, memory="80Mi", volumes=volumes)
    await node.ticked(first, 5)
    return first


async def nothing_holds(node: Node, guest: str, memory: Path) -> None:
    """As large as the guest, and of no use to anybody: neither under a name, nor by a QEMU that still has it open."""

    async def look() -> bool:
        files = [os.readlink(one) for one in Path(f"/proc/{node.pid(guest)}/fd").iterdir()]
        assert [one for one in files if str(memory.parent) in one] == []
        assert list(memory.parent.iterdir()) == []
        return True

    await eventually(look)


async def killed(node: Node, work: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, *steps: tuple[object, str]) -> None:
    """The agent dies when it comes to one of these, and another one takes over."""
    with monkeypatch.context() as patch:

        def dies(*_: Any, **__: Any) -> Any:
            raise Killed

        async def dies_later(*_: Any, **__: Any) -> Any:
            raise Killed

        async def does_nothing(*_: Any, **__: Any) -> None:
            pass

        for place, name in steps:
            patch.setattr(place, name, dies_later if inspect.iscoroutinefunction(getattr(place, name)) else dies)
        patch.setattr(saving, "go_on", does_nothing)
        with pytest.raises(Killed):
            await work()
    await node.reopen()


async def test_it_is_saved_and_goes_on_elsewhere(node: Node, other: Node, guest: Path, memory: Path) -> None:
    first = await started(node)
    told: list[tuple[int, int]] = []
    saved = await node.runtime.save(first, INSTANCE, memory, lambda done, total: told.append((done, total)))
    assert (node.status(first).state, node.status(first).reason) == ("Saved", reasons.SUSPENDED)
    assert saved.started == node.status(first).started and saved.bytes == memory.stat().st_size and not saved.paused
    assert all(0 <= done <= total for done, total in told)
    second = from_memory(guest, first, saved)
    await other.runtime.restore(second, memory)
    assert (other.status(second.guest).state, other.status(second.guest).resumed) == ("Running", True)
    await other.ticked(second.guest, 10)
    await check_memory(other, second.guest)
    await assert_one_guest_said((node, first), (other, second.guest))
    await nothing_holds(other, second.guest, memory)


async def test_memory_is_used_once(node: Node, other: Node, guest: Path, memory: Path) -> None:
    """Trap: memory restored twice."""
    first = await started(node)
    saved = await save(node, first, memory)
    copy = memory.read_bytes()
    await other.runtime.restore(from_memory(guest, first, saved), memory)
    with pytest.raises(Unfit, match="it is not there"):
        await node.runtime.restore(from_memory(guest, first, saved), memory)
    memory.with_name("memory.used").write_bytes(copy)
    with pytest.raises(Unfit, match="it was used before"):
        await node.runtime.restore(from_memory(guest, first, saved), memory)


async def test_a_saved_guest_never_runs_again_where_it_was(node: Node, memory: Path) -> None:
    first = await started(node)
    await save(node, first, memory)
    said = await node.text(first)
    for again in range(2):
        await node.runtime.go_on(first)
        await node.runtime.resume(first)
        assert node.status(first).state == "Saved"
        assert (await save(node, first, memory)).bytes == memory.stat().st_size, "whoever asks again is told the same"
        if not again:
            await node.reopen()
    assert await node.text(first) == said


async def test_a_paused_guest_is_restored_paused(node: Node, other: Node, guest: Path, memory: Path) -> None:
    first = await started(node)
    await node.runtime.pause(first)
    saved = await save(node, first, memory)
    second = from_memory(guest, first, saved)
    await other.runtime.restore(second, memory)
    assert (saved.paused, other.status(second.guest).state) == (True, "Paused")
    await other.runtime.resume(second.guest)
    await other.ticked(second.guest, 5)
    await assert_one_guest_said((node, first), (other, second.guest))


SAVING_STEPS: dict[str, tuple[object, str]] = {
    "it stands still": (saving, "_stream"),
    "QEMU writes": (saving, "_until_written"),
    "all is written": (saving, "_sync"),
    "it is on the disk": (MemoryFile, "publish"),
    "it has its name": (Guest, "end"),
}


@pytest.mark.parametrize("step", SAVING_STEPS)
async def test_an_agent_that_dies_while_it_saves_is_followed_by_one_that_does(
    node: Node, other: Node, guest: Path, memory: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await started(node)
    await killed(node, lambda: save(node, first, memory), monkeypatch, SAVING_STEPS[step])
    assert (node.status(first).state, node.status(first).reason) == ("Paused", reasons.SAVING_MEMORY)
    await node.runtime.resume(first)
    assert node.status(first).state == "Paused", "it stands still for that, whatever else is wished"
    saved = await save(node, first, memory)
    second = from_memory(guest, first, saved)
    await other.runtime.restore(second, memory)
    await other.ticked(second.guest, 10)
    await assert_one_guest_said((node, first), (other, second.guest))


@pytest.mark.parametrize("step", SAVING_STEPS)
async def test_where_nobody_saves_it_any_more_it_goes_on_and_nothing_is_left_of_it(
    node: Node, memory: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await started(node)
    await killed(node, lambda: save(node, first, memory), monkeypatch, SAVING_STEPS[step])
    ticks = len(await node.ticks(first))
    await node.runtime.go_on(first)
    assert (node.status(first).state, list(memory.parent.iterdir())) == ("Running", [])
    await node.ticked(first, ticks + 5)
    await assert_one_guest_said((node, first))
    # And can be saved all the same.
    await save(node, first, memory)


async def test_called_off_it_goes_on(node: Node, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await started(node)
    reached = asyncio.Event()

    async def never(*_: Any) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(saving, "_until_written", never)
    work = asyncio.create_task(save(node, first, memory))
    await reached.wait()
    with pytest.raises(Refused, match="its memory is being saved"):
        await node.runtime.migrate_out(first, "m", "unix:nowhere", PolicySettings())
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    ticks = len(await node.ticks(first))
    await node.ticked(first, ticks + 5)
    assert (node.status(first).state, list(memory.parent.iterdir())) == ("Running", [])


async def test_a_disk_that_is_full_lets_it_go_on(node: Node, tmp_path: Path) -> None:
    first = await started(node)
    # A device that takes nothing, in the place of the file.
    folder = tmp_path / "volume"
    folder.mkdir()

    def full(self: MemoryFile) -> int:
        return os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryFile, "create", full)
        with pytest.raises((Refused, OSError)):
            await save(node, first, folder / "memory")
    ticks = len(await node.ticks(first))
    await node.ticked(first, ticks + 5)
    assert node.status(first).state == "Running" and list(folder.iterdir()) == []
    await assert_one_guest_said((node, first))


async def test_a_qemu_that_dies_while_it_is_saved_leaves_nothing_that_could_be_used(
    node: Node, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await started(node)

    async def dies(*_: Any) -> None:
        os.kill(node.pid(first), signal.SIGKILL)
        await node.becomes(first, "Crashed")
        raise saving.QMPError("gone")

    monkeypatch.setattr(saving, "_until_written", dies)
    with pytest.raises(Refused, match="its memory could not be saved: QEMU was killed by signal 9"):
        await save(node, first, memory)
    assert node.status(first).state == "Crashed" and not memory.exists()


async def test_a_guest_on_its_way_is_saved_later(node: Node, other: Node, guest: Path, memory: Path) -> None:
    first = await started(node)
    target = order(guest, LOAD, memory="80Mi", incoming=node.status(first).started)
    address = await other.runtime.prepare_incoming(target, "m2")
    await node.runtime.migrate_out(first, "m2", address, SLOW)
    await copied(node, first)
    with pytest.raises(Busy, match="on its way"):
        await save(node, first, memory)
    await node.runtime.cancel(first)


RESTORING_STEPS: dict[str, tuple[tuple[object, str], bool]] = {
    "nothing is used yet": ((MemoryFile, "use"), True),
    "it is used, and not read": ((saving, "load"), False),
    "it is read, and does not run": ((QemuRuntime, "_run_restored"), True),
    "it runs, and the file is there": ((saving, "let_go"), True),
}


@pytest.mark.parametrize("step", RESTORING_STEPS)
async def test_an_agent_that_dies_while_it_restores_is_followed_by_one_that_does_or_says_that_it_cannot(
    node: Node, other: Node, guest: Path, memory: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await started(node)
    saved = await save(node, first, memory)
    second = from_memory(guest, first, saved)
    place, goes_on = RESTORING_STEPS[step]
    await killed(other, lambda: other.runtime.restore(second, memory), monkeypatch, place)
    if not goes_on:
        with pytest.raises(Unfit, match="interrupted"):
            await other.runtime.restore(second, memory)
        assert second.guest not in other.runtime.guests() and not memory.exists()
        return
    await other.runtime.restore(second, memory)
    await other.ticked(second.guest, 10)
    await assert_one_guest_said((node, first), (other, second.guest))
    await nothing_holds(other, second.guest, memory)


async def test_memory_of_another_guest_or_machine_is_not_used(node: Node, other: Node, guest: Path, memory: Path) -> None:
    """Trap: restore on another CPU, QEMU or storage; and what a claim says of its memory is anybody's word."""
    first = await started(node)
    saved = await save(node, first, memory)
    for change, why in (
        (from_memory(guest, "somebody else", saved), "is of another guest"),
        (_named(from_memory(guest, first, saved), "mail"), "is of another guest"),
        (_with(from_memory(guest, first, saved), {"devices": {"rng": {}}}), "the machine is another one .*devices"),
    ):
        with pytest.raises(Unfit, match=why):
            await other.runtime.restore(change, memory)
        assert other.runtime.guests() == [] and memory.exists()
    await other.runtime.restore(from_memory(guest, first, saved), memory)


async def test_disks_and_files_that_have_changed_are_not_what_the_memory_knows(
    node: Node, other: Node, guest: Path, memory: Path, tmp_path: Path
) -> None:
    """Trap: memory restored after its disk was used."""
    disk = tmp_path / "disk.img"
    disk.write_bytes(b"\0" * (1 << 20))
    volumes: dict[str, Volume] = {"root": FileVolume(disk), "settings": FilesVolume({"a": b"1"})}
    devices = {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "settings", "cdrom": {"bus": "sata"}}]}}
    first = await node.start(LOAD, memory="80Mi", volumes=volumes, domain=devices)
    await node.ticked(first, 5)
    saved = await save(node, first, memory)

    def again(**changed: Volume) -> Order:
        return _with(from_memory(guest, first, saved, {**volumes, **changed}), devices)

    with pytest.raises(Unfit, match="what volume settings is made of has changed"):
        await other.runtime.restore(again(settings=FilesVolume({"a": b"2"})), memory)
    was = disk.stat()
    with disk.open("r+b") as file:
        file.write(b"written by somebody else")
    with pytest.raises(Unfit, match="the disk of volume root was changed or written since"):
        await other.runtime.restore(again(), memory)
    os.utime(disk, ns=(was.st_atime_ns, was.st_mtime_ns))
    await other.runtime.restore(again(), memory)
    await other.runtime.discard_memory(memory)


async def test_a_guest_with_an_empty_disk_is_refused(node: Node, memory: Path) -> None:
    from herder.nodes.runtimes.base import EmptyVolume

    first = await node.start(LOAD, volumes={"scratch": EmptyVolume(1 << 20)})
    with pytest.raises(Refused, match="volume scratch is an emptyDisk") as refused:
        await save(node, first, memory)
    assert refused.value.reason == reasons.CANNOT_SAVE_MEMORY
    assert node.status(first).state == "Running"


async def test_a_guest_of_another_instance_is_not_saved(node: Node, memory: Path) -> None:
    first = await started(node)
    with pytest.raises(Refused, match="no guest of that instance"):
        await node.runtime.save(first, "another", memory, nothing)
    assert node.status(first).state == "Running"


async def test_a_file_that_holds_no_memory_is_refused(node: Node, guest: Path, memory: Path) -> None:
    first = await started(node)
    saved = await save(node, first, memory)
    memory.write_bytes(b"nonsense" * 10000)
    with pytest.raises(Unfit, match="cannot be read"):
        await node.runtime.restore(from_memory(guest, first, saved), memory)
    with memory.open("wb") as file:
        file.write(b"")
    with pytest.raises(Unfit, match="cannot be read"):
        await node.runtime.restore(from_memory(guest, first, saved), memory)


async def test_a_stream_that_is_cut_short_is_told_and_nothing_runs(node: Node, other: Node, guest: Path, memory: Path) -> None:
    first = await started(node)
    saved = await save(node, first, memory)
    os.truncate(memory, memory.stat().st_size // 2)
    second = from_memory(guest, first, saved)
    with pytest.raises(Unfit, match=r"does not fit|cannot read"):
        await other.runtime.restore(second, memory)
    assert other.runtime.guests() == [] and not memory.exists(), "it was used"


def _named(made: Order, name: str) -> Order:
    owner = msgspec.structs.replace(made.definition.instance, name=name)
    return msgspec.structs.replace(made, definition=msgspec.structs.replace(made.definition, instance=owner))


def _with(made: Order, domain: dict[str, Any]) -> Order:
    written = msgspec.to_builtins(made.definition.spec.domain)
    changed = msgspec.convert({**written, **domain}, type(made.definition.spec.domain))
    spec = msgspec.structs.replace(made.definition.spec, domain=changed)
    return msgspec.structs.replace(made, definition=msgspec.structs.replace(made.definition, spec=spec))
