"""`herder up` where it cannot start: one sentence, an exit code, nothing spoilt, no traceback."""

import os
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.e2e.program import Ended, Up, run_up

CANNOT_USE_DATA = 3
CANNOT_LISTEN = 4
CANNOT_RUN = 5
ANY_PORT = ("--listen", "127.0.0.1:0")


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that somebody has used before."""
    with Up(tmp_path_factory.mktemp("used"), nodes=0) as up:
        pass
    return up.data


def _copy(source: Path, target: Path) -> Path:
    for path in source.rglob("*"):
        if path.is_file():
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(source)).write_bytes(path.read_bytes())
    return target


def _refused(ended: Ended, code: int, *words: str) -> None:
    """One sentence, on stderr, that holds all of these words."""
    assert ended.code == code, ended
    assert ended.out == ""
    assert ended.err.startswith("herder: ")
    assert len(ended.err.splitlines()) == 1, ended.err
    assert [word for word in words if word not in ended.err] == [], ended.err


def test_a_directory_that_is_held_is_said_to_be_held_by_whom(herd: Up, tmp_path: Path) -> None:
    ended = run_up("--data", str(herd.data), *ANY_PORT, cwd=tmp_path)
    _refused(ended, CANNOT_USE_DATA, str(herd.data), f"pid {herd.pid}", f"127.0.0.1:{herd.port}")


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        _refused(run_up("--data", "data", "--listen", address, cwd=tmp_path), CANNOT_LISTEN, address, "Address already in use")


def test_a_host_that_is_not_here_is_named(tmp_path: Path) -> None:
    ended = run_up("--data", "data", "--listen", "192.0.2.1:0", cwd=tmp_path)
    _refused(ended, CANNOT_LISTEN, "192.0.2.1:0", "Cannot assign requested address")


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_file_is_no_directory(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    _refused(run_up("--data", place, *ANY_PORT, cwd=tmp_path), CANNOT_USE_DATA, place, "Not a directory")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        place = "/proc/herder"  # root may write everywhere, but not there
    else:
        tmp_path.chmod(0o500)
        place = str(tmp_path / "data")
    _refused(run_up("--data", place, *ANY_PORT, cwd=Path("/")), CANNOT_USE_DATA, place)


def test_data_of_a_newer_version_is_left_alone(used: Path, tmp_path: Path) -> None:
    data = _copy(used, tmp_path / "data")
    with sqlite3.connect(data / "herder.db") as database:
        database.execute("PRAGMA user_version=99")
    database.close()
    _refused(run_up("--data", str(data), *ANY_PORT, cwd=tmp_path), CANNOT_RUN, "newer version", "99")
    with sqlite3.connect(data / "herder.db") as database:
        assert database.execute("PRAGMA user_version").fetchone() == (99,)
    database.close()


def _not_a_database(data: Path) -> None:
    (data / "herder.db").write_bytes(b"not a database at all" * 1000)


def _damaged_pages(data: Path) -> None:
    """The beginning is that of a database, the rest is not."""
    content = bytearray((data / "herder.db").read_bytes())
    content[16384:] = b"U" * (len(content) - 16384)
    (data / "herder.db").write_bytes(content)


def _cut_certificate(data: Path) -> None:
    (data / "pki" / "ca.crt").write_text("-----BEGIN CERTIFICATE-----")


def _empty_key(data: Path) -> None:
    (data / "pki" / "ca.key").write_text("")


@pytest.mark.parametrize(
    ("damage", "code", "word"),
    [
        (_not_a_database, CANNOT_RUN, "herder.db"),
        (_damaged_pages, CANNOT_RUN, "herder.db"),
        (_cut_certificate, CANNOT_USE_DATA, "ca.crt"),
        (_empty_key, CANNOT_USE_DATA, "ca.key"),
    ],
    ids=["database", "pages", "certificate", "key"],
)
def test_damaged_data_is_a_sentence(used: Path, tmp_path: Path, damage: Callable[[Path], None], code: int, word: str) -> None:
    data = _copy(used, tmp_path / "data")
    damage(data)
    _refused(run_up("--data", str(data), *ANY_PORT, cwd=tmp_path), code, word)


def test_a_kubeconfig_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "config"
    theirs = yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "contexts": [{"name": "production", "context": {}}]})
    file.write_text(theirs)
    _refused(run_up("--data", "data", *ANY_PORT, "--kubeconfig", str(file), cwd=tmp_path), CANNOT_USE_DATA, str(file), "production")
    assert file.read_text() == theirs


@pytest.mark.parametrize("content", ["dear diary", "[1, 2]", "{", "contexts: 7"])
def test_what_is_no_kubeconfig_is_not_overwritten(tmp_path: Path, content: str) -> None:
    file = tmp_path / "notes"
    file.write_text(content)
    _refused(run_up("--data", "data", *ANY_PORT, "--kubeconfig", str(file), cwd=tmp_path), CANNOT_USE_DATA, "not a kubeconfig")
    assert file.read_text() == content


def test_qemu_that_is_not_installed_is_named(tmp_path: Path) -> None:
    ended = run_up("--data", "data", *ANY_PORT, "--runtime", "qemu", cwd=tmp_path, program_path=str(tmp_path))
    _refused(ended, CANNOT_RUN, "qemu-system-x86_64", "--runtime simulated")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--listen", "6443"), ("'6443'", "127.0.0.1:6443")),
        (("--listen", "127.0.0.1:99999"), ("65535",)),
        (("--nodes", "-1"), ("--nodes", "-1")),
        (("--runtime", "docker"), ("'docker'", "'simulated'", "'qemu'")),
    ],
    ids=["no-host", "port", "nodes", "runtime"],
)
def test_a_wrong_command_line_says_what_is_right(tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    ended = run_up("--data", "data", *arguments, cwd=tmp_path)
    assert ended.code == 2
    assert [word for word in words if word not in ended.err] == []
    assert not (tmp_path / "data").exists()
