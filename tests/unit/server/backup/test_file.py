"""The file of a backup is whole, or it is refused with a sentence."""

from __future__ import annotations

import gzip
import stat
from pathlib import Path

import pytest

from herder.server.backup import BackupError, BackupWriter, Header, is_backup, read_backup
from herder.server.backup.file import object_line

HEADER = Header(1, "2026-01-01T00:00:00Z", "abc", 7)
OBJECTS = [("pods", b'{"metadata":{"name":"a"}}'), ("secrets", '{"metadata":{"name":"b"},"data":"\u00fc\\n"}'.encode())]


def written(path: Path, header: Header = HEADER) -> Path:
    with BackupWriter(path) as out:
        out.header(header)
        for kind, raw in OBJECTS:
            out.line(object_line(kind, raw), is_object=True)
        out.file("pki/ca.key", b"\x00secret\xff")
        out.finish()
    return path


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    backup = read_backup(written(tmp_path / "b"))
    assert (backup.header, backup.objects, backup.files) == (HEADER, OBJECTS, {"pki/ca.key": b"\x00secret\xff"})
    assert is_backup(tmp_path / "b")


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    assert stat.S_IMODE(written(tmp_path / "b").stat().st_mode) == 0o600


def test_what_is_not_finished_leaves_nothing_and_replaces_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "b")
    before = path.read_bytes()
    with pytest.raises(RuntimeError), BackupWriter(path) as out:
        out.header(HEADER)
        raise RuntimeError
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["b"]


def test_a_file_that_was_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    whole = written(tmp_path / "b").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(BackupError, match="cut"):
            read_backup(tmp_path / "cut")


def test_a_file_in_which_any_byte_of_the_contents_changed_is_refused(tmp_path: Path) -> None:
    with gzip.open(written(tmp_path / "b")) as file:
        plain = file.read()
    for place in range(len(plain)):
        changed = bytearray(plain)
        changed[place] ^= 1
        (tmp_path / "changed").write_bytes(gzip.compress(bytes(changed), 1))
        with pytest.raises(BackupError, match="changed"):
            read_backup(tmp_path / "changed")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not a herder backup"),
        (b"SQLite format 3\0", "not a herder backup"),
        (gzip.compress(b"hello\n"), "not a herder backup"),
        (gzip.compress(b'{"herder-backup":1,"created":"","identity":"","revision":1}\n'), "is not whole"),
        (gzip.compress(b'{"herder-backup":2,"created":"","identity":"","revision":1,"new":1}\n'), "newer version of herder"),
    ],
    ids=["empty", "a database", "other lines", "no end", "newer"],
)
def test_what_is_something_else_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(BackupError, match=sentence):
        read_backup(path)
    assert is_backup(path) == content.startswith(b"\x1f\x8b") & (b"herder-backup" in _plain(content))


def _plain(content: bytes) -> bytes:
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else b""


def test_something_behind_the_end_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "b")
    with gzip.open(path) as file:
        plain = file.read()
    path.write_bytes(gzip.compress(plain + object_line("pods", b"{}")))
    with pytest.raises(BackupError, match="something follows its end"):
        read_backup(path)


def test_a_file_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="cannot be read: No such file"):
        read_backup(tmp_path / "absent")
