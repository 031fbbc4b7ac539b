"""Whether something can be stored is tried out, and what is tried leaves no trace."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from herder.server.store import Room, StorageFullError
from herder.server.store import room as room_module
from tests.unit.server.store.rig import MakeWriter, Rig, inline, threaded

MAPS = "configmaps"


@pytest.mark.parametrize("make_writer", [inline, threaded])
async def test_a_store_without_room_says_so_until_there_is_some(
    tmp_path: Path, make_writer: MakeWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room_module, "AGAIN_AFTER", 0.0)
    rig = Rig(tmp_path / "db", make_writer)
    room = Room(rig.store)
    assert await room.problem() == ""
    rig.database.fill()
    with pytest.raises(StorageFullError):
        for number in range(100):
            await rig.put(MAPS, "n", f"a-{number}", size=100_000)
    assert await room.problem() == "the disk of the data directory is full: nothing was stored"
    rig.database.make_room()
    assert await room.problem() == ""
    await rig.put(MAPS, "n", "later", size=100_000)
    rig.store.close()


async def test_what_is_tried_fails_nobody_elses_write(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "db", threaded)
    await rig.put(MAPS, "n", "first", size=10)
    rig.database.fill()
    # All of them in one go of the writer; only the large one is too much.
    trying = asyncio.ensure_future(rig.store.probe(10_000_000))
    await asyncio.sleep(0)
    small = [rig.put(MAPS, "n", f"small-{number}", size=1) for number in range(3)]
    await asyncio.gather(*small)
    with pytest.raises(StorageFullError):
        await trying
    rig.store.close()


async def test_a_disk_with_plenty_of_room_is_not_written_to(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "db", inline)
    before = rig.database.commits
    assert await Room(rig.store).problem() == ""
    assert rig.database.commits == before
    rig.store.close()
