"""Small disks of files, read by somebody else's program."""

from __future__ import annotations

import io

import pycdlib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.nodes.runtimes.qemu.iso import SECTOR, iso_image

NAMES = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", min_size=1, max_size=103).filter(
    lambda name: name not in (".", "..")
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def read(image: bytes) -> tuple[str, dict[str, bytes]]:
    """Its label, and what Joliet shows of it."""
    disk = pycdlib.PyCdlib()
    disk.open_fp(io.BytesIO(image))
    found: dict[str, bytes] = {}
    for folder, _, names in disk.walk(joliet_path="/"):
        for name in names:
            content = io.BytesIO()
            disk.get_file_from_iso_fp(content, joliet_path=f"{folder.rstrip('/')}/{name}")
            found[f"{folder.strip('/')}/{name}".lstrip("/")] = content.getvalue()
    label = disk.pvd.volume_identifier.decode().rstrip()
    disk.close()
    return label, found


def _no_file_is_a_folder(paths: set[str]) -> bool:
    folders = {"/".join(path.split("/")[:depth]) for path in paths for depth in range(1, path.count("/") + 1)}
    return not folders & paths


@pytest.mark.slow
@given(st.dictionaries(PATHS, st.binary(max_size=5000), max_size=12).filter(lambda files: _no_file_is_a_folder(set(files))))
def test_what_is_put_in_is_read_again(files: dict[str, bytes]) -> None:
    label, found = read(iso_image(files, "config-2"))
    assert label == "config-2"
    assert found == files


def test_many_files_fill_more_than_one_sector() -> None:
    files = {f"file-with-a-long-name-{number}": bytes([number % 256]) for number in range(200)}
    assert read(iso_image(files))[1] == files


def test_the_same_files_give_the_same_bytes_in_whole_sectors() -> None:
    first = iso_image({"a": b"1", "b/c": b"2"}, "cidata")
    assert first == iso_image({"b/c": b"2", "a": b"1"}, "cidata")
    assert len(first) % SECTOR == 0
    assert int.from_bytes(first[16 * SECTOR + 80 : 16 * SECTOR + 84], "little") * SECTOR == len(first)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("x" * 104, "longer than 103 letters"),
        ("a:b", "cannot be called 'a:b'"),
        ("a/../b", "cannot be called"),
        ("", "cannot be called"),
    ],
)
def test_a_name_that_does_not_fit_is_said(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        iso_image({name: b""})
