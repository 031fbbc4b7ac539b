"""Going back: replays, snapshots and compaction, across restarts."""

import asyncio
from pathlib import Path
from unittest import mock

import pytest

from herder.server.store import CompactedError
from herder.server.store import store as store_module
from herder.server.store.history import History
from tests.unit.server.store.rig import Rig, copy_as_if_killed, inline, threaded


async def brief(rig: Rig, after: int) -> list[tuple[int, str, str]]:
    return [(step.revision, step.kind, step.key) for step in await rig.history("pods", after)]


async def lived(path: Path) -> Rig:
    """web: created at 1, changed at 3; gone: created at 2, deleted at 4."""
    rig = Rig(path, inline)
    await rig.put("pods", "a", "web")
    await rig.put("pods", "a", "gone")
    await rig.put("pods", "a", "web")
    await rig.remove("pods", "a", "gone")
    return rig


async def restarted(rig: Rig, path: Path) -> Rig:
    await rig.close()
    return Rig(path, inline)


async def test_history_is_the_same_from_memory_and_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    rig = await lived(path)
    from_memory = [await rig.history("pods", after) for after in range(5)]
    rig = await restarted(rig, path)
    assert [await rig.history("pods", after) for after in range(5)] == from_memory
    await rig.put("pods", "a", "new")
    assert await brief(rig, 2) == [(3, "MODIFIED", "a/web"), (4, "DELETED", "a/gone"), (5, "ADDED", "a/new")]
    await rig.close()


async def test_a_snapshot_from_before_a_deletion_shows_the_object_also_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    rig = await lived(path)
    before = [await rig.contents_at("pods", revision) for revision in range(1, 5)]
    assert [list(snapshot) for snapshot in before] == [["a/web"], ["a/gone", "a/web"], ["a/gone", "a/web"], ["a/web"]]
    rig = await restarted(rig, path)
    assert [await rig.contents_at("pods", revision) for revision in range(1, 5)] == before
    await rig.close()


async def test_the_revision_of_a_deletion_is_not_used_again_when_its_row_is_compacted_away(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    rig = await lived(path)
    await rig.compact_all(4)
    rig = await restarted(rig, path)
    assert (rig.store.revision, rig.store.compacted, rig.store.reserve()) == (4, 4, 5)
    await rig.close()


async def test_history_before_compaction_is_refused_and_the_rest_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    rig = await lived(path)
    expected = await rig.history("pods", 2)
    await rig.compact_all(2)
    assert not rig.store.compact(2)
    for _ in range(2):
        # Nothing was superseded up to 2: nothing had to go, so nothing is refused.
        assert await rig.history("pods", 2) == expected
        rig = await restarted(rig, path)
    await rig.compact_all(3)
    for _ in range(2):
        with pytest.raises(CompactedError, match=r"too old resource version: 2 \(3\)"):
            await rig.history("pods", 2)
        with pytest.raises(CompactedError):
            await rig.contents_at("pods", 2)
        with pytest.raises(CompactedError):
            # Also for a kind that has never changed: whoever asks must start over as a whole.
            await rig.contents_at("nodes", 2)
        assert await brief(rig, 3) == [(4, "DELETED", "a/gone")]
        assert list(await rig.contents_at("pods", 3)) == ["a/gone", "a/web"]
        rig = await restarted(rig, path)
    await rig.close()


async def test_a_crash_between_slices_of_compaction_brings_nothing_back(tmp_path: Path) -> None:
    """Each number of slices, then a kill: first the last state of the deleted goes, then the word that it was deleted."""
    with mock.patch.object(store_module, "COMPACT_SLICE", 1):
        for slices in range(5):
            path = tmp_path / f"herder-{slices}.db"
            rig = await lived(path)
            expected = rig.contents("pods")
            done = [rig.store.compact(4) for _ in range(slices)]
            left_behind = copy_as_if_killed(path, tmp_path / f"killed-{slices}")
            await rig.close()
            rig = Rig(left_behind, inline)
            assert rig.contents("pods") == expected
            assert rig.store.superseded() == 3 - sum(done)
            await rig.compact_all(4)
            assert rig.contents("pods") == expected
            assert rig.database.revisions() == [3]
            await rig.close()


async def test_a_compaction_that_found_no_room_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    rig = await lived(path)
    with mock.patch.object(rig.database, "fails_before_commit", True):
        assert rig.store.compact(4)
    assert rig.database.revisions() == [1, 2, 3, 4]
    assert rig.store.superseded() == 3
    rig = await restarted(rig, path)
    await rig.compact_all(4)
    assert rig.database.revisions() == [3]
    await rig.close()


async def test_old_history_is_given_up_in_order_of_what_superseded_it(tmp_path: Path) -> None:
    rig = await lived(tmp_path / "herder.db")
    assert [rig.store.oldest_worth_keeping(rows) for rows in (0, 1, 2, 3, 10)] == [4, 4, 3, 0, 0]
    await rig.close()


async def test_replay_is_whole_while_writes_and_compaction_go_on(tmp_path: Path) -> None:
    """With no memory of its own, each look back reads the disk, beside the writer."""
    rig = Rig(tmp_path / "herder.db", threaded)
    rig.store.history = History(0, limit=0)
    stop = asyncio.Event()

    async def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            await asyncio.gather(*(rig.put("pods", "a", f"pod-{(number + offset) % 30}") for offset in range(5)))
            if number % 10 == 0:
                rig.store.compact(rig.store.revision - 50)

    writing = asyncio.create_task(write())
    looks = 0
    while looks < 40:
        await asyncio.sleep(0)
        start = max(rig.store.revision - 20, rig.store.compacted)
        try:
            found = [step.revision for step in await rig.history("pods", start)]
        except CompactedError:
            continue  # overtaken while reading, and told so
        assert found == list(range(start + 1, start + 1 + len(found)))
        looks += bool(found)
    stop.set()
    await writing
    await rig.close()
