"""Files that are not what we hope for are refused with a sentence."""

import sqlite3
from pathlib import Path

import pytest

from herder.server.store import Database, DataError, NewerFormatError, Store
from tests.unit.server.store.rig import Rig, inline


def test_data_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=2")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NewerFormatError, match=r"herder\.db was written by a newer version of herder \(data format 2,.* knows 1\)"):
        Database(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    path.write_text("a shopping list\n" * 1000)
    with pytest.raises(DataError, match=r"herder\.db is not a herder database"):
        Database(path)
    assert path.read_text().startswith("a shopping list")


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"herder\.db cannot be opened"):
        Database(tmp_path / "nowhere" / "herder.db")


async def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    rig = Rig(path, inline)
    for number in range(50):
        await rig.put("pods", "default", f"pod-{number}", size=3000)
    await rig.close()
    damaged = bytearray(path.read_bytes())
    damaged[16384 * 2 :] = b"\xff" * (len(damaged) - 16384 * 2)
    path.write_bytes(damaged)
    database = Database(path)
    with pytest.raises(DataError, match=r"herder\.db is damaged: "):
        Store(database, inline(database))
    database.close()


def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(DataError, match=r"herder\.db holds the data of another program"):
        Database(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]
    connection.close()


def test_a_new_file_says_its_format(tmp_path: Path) -> None:
    path = tmp_path / "herder.db"
    Database(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("PRAGMA page_size").fetchone() == (16384,)
    connection.close()
