"""Every data format that was ever released is opened by every later version, and holds what it held."""

import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

from herder.server.store import CompactedError
from herder.server.store.database import FORMAT
from tests.unit.server.store.rig import Rig, inline

FIXTURES = Path(__file__).parents[3] / "fixtures"
FORMATS = list(range(1, FORMAT + 1))


@pytest.fixture(params=FORMATS)
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copy(FIXTURES / f"data-format-{request.param}" / "herder.db", tmp_path / "herder.db"))


@pytest.mark.parametrize("number", FORMATS)
def test_the_fixture_is_of_its_format_and_in_one_piece(number: int) -> None:
    folder = FIXTURES / f"data-format-{number}"
    assert [file.name for file in folder.iterdir()] == ["herder.db"]
    connection = sqlite3.connect(f"file:{folder / 'herder.db'}?mode=ro&immutable=1", uri=True)
    assert connection.execute("PRAGMA user_version").fetchone() == (number,)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


async def test_the_known_objects_are_there(data: Path) -> None:
    rig = Rig(data, inline)
    assert (rig.store.revision, rig.store.compacted) == (9, 5)
    found = {(table, key): rig.store.get(table, key) for table in sorted(rig.store.kinds()) for key in rig.contents(table)}
    revisions = {place: record.revision for place, record in found.items() if record}
    assert revisions == {("configmaps", "default/settings"): 6, ("namespaces", "default"): 1, ("nodes", "node-1"): 9}
    assert msgspec.json.decode(rig.contents("configmaps")["default/settings"]) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "settings",
            "uid": "00000000-0000-4000-8000-000000000006",
            "resourceVersion": "6",
            "namespace": "default",
        },
        "data": {"at": "6", "text": "Grüße, 世界"},
    }
    await rig.close()


async def test_the_kept_history_is_there(data: Path) -> None:
    rig = Rig(data, inline)
    with pytest.raises(CompactedError):
        await rig.history("configmaps", 4)
    steps = await rig.history("configmaps", 5)
    assert [(step.revision, step.kind, step.key) for step in steps] == [
        (6, "MODIFIED", "default/settings"),
        (7, "ADDED", "default/short-lived"),
        (8, "DELETED", "default/short-lived"),
    ]
    before = steps[0].before
    assert before is not None and msgspec.json.decode(before)["data"] == {"at": "5"}
    await rig.close()


async def test_it_goes_on_where_it_was(data: Path) -> None:
    rig = Rig(data, inline)
    await rig.put("configmaps", "default", "settings")
    assert rig.store.revision == 10
    await rig.compact_all(10)
    await rig.close()
    rig = Rig(data, inline)
    assert (rig.store.revision, rig.store.count()) == (10, 3)
    await rig.close()
