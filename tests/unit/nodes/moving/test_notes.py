"""What is noted is there whatever happens, and what cannot be read is not made up."""

from pathlib import Path

import pytest

from herder.api.guest import MigrationOrder
from herder.api.kinds.migration_state import PolicySettings
from herder.nodes.moving.notes import COMING, LEAVING, Coming, DiskNotes, Leaving, MemoryNotes, Notes

ORDER = MigrationOrder(migration="m", settings=PolicySettings(allow_post_copy=True), target_pod="t", address="unix:/x")
HANDED_OVER = Leaving(order=ORDER, token="k", outcome="HandedOver", paused=True)
GRANTED = Coming(migration="m", token="k", source_node="node-1", granted=True)


@pytest.fixture(params=["disk", "memory"])
def notes(request: pytest.FixtureRequest, tmp_path: Path) -> Notes:
    return DiskNotes(tmp_path / "moves") if request.param == "disk" else MemoryNotes()


async def test_a_guest_may_have_come_and_be_leaving(notes: Notes) -> None:
    await notes.write("g", GRANTED)
    await notes.write("g", HANDED_OVER)
    assert (await notes.coming(), await notes.leaving()) == ({"g": GRANTED}, {"g": HANDED_OVER})


async def test_the_last_note_counts(notes: Notes) -> None:
    await notes.write("g", Leaving(order=ORDER))
    await notes.write("g", HANDED_OVER)
    assert (await notes.leaving())["g"].outcome == "HandedOver"


async def test_a_note_is_removed_by_its_kind_or_with_all_others(notes: Notes) -> None:
    await notes.write("g", GRANTED)
    await notes.write("g", HANDED_OVER)
    await notes.remove("g", LEAVING)
    assert (await notes.coming(), await notes.leaving()) == ({"g": GRANTED}, {})
    await notes.remove("g")
    await notes.remove("g", COMING)
    assert await notes.coming() == {}


async def test_another_agent_finds_them_on_the_disk(tmp_path: Path) -> None:
    await DiskNotes(tmp_path / "moves").write("g", HANDED_OVER)
    assert await DiskNotes(tmp_path / "moves").leaving() == {"g": HANDED_OVER}


async def test_a_note_that_was_being_written_is_none(tmp_path: Path) -> None:
    """The agent died before it was whole: the one before it counts."""
    notes = DiskNotes(tmp_path)
    await notes.write("g", Leaving(order=ORDER))
    (tmp_path / ".g.leaving.new").write_text('{"order":')
    assert (await notes.leaving())["g"].outcome == ""


@pytest.mark.parametrize("kind", [LEAVING, COMING])
@pytest.mark.parametrize("damage", ["{", "", "\0\0\0\0", "[]", "folder", "loop"])
async def test_a_note_that_cannot_be_read_is_told_by_name_and_kept(tmp_path: Path, kind: str, damage: str) -> None:
    notes, path = DiskNotes(tmp_path), tmp_path / f"g.{kind}"
    await notes.write("other", HANDED_OVER)
    if damage == "folder":
        path.mkdir()
    elif damage == "loop":
        path.symlink_to(path)
    else:
        path.write_text(damage)
    (sentence,) = (await notes.unreadable()).values()
    assert f"g.{kind}: cannot be read" in sentence
    assert (await notes.leaving(), await notes.coming()) == ({"other": HANDED_OVER}, {})
    await notes.remove("g")
    assert await notes.unreadable() == {}
    assert [one.name for one in (tmp_path / "unreadable").iterdir()] == [f"g.{kind}"]
