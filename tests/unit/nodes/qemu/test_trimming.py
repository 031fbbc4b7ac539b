"""A log that grows for ever keeps its newest part, and whoever reads along does not notice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from herder.nodes.runtimes.qemu.trimming import BLOCK, read_kept, trim

KEPT = 16 * BLOCK
LINE = 64


class Log:
    """As QEMU writes it: by one descriptor, always at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writing = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.reading = os.open(path, os.O_RDONLY)
        self.count = 0

    def write(self, lines: int) -> None:
        numbers = range(self.count, self.count + lines)
        os.write(self.writing, b"".join(b"%0*d\n" % (LINE - 1, number) for number in numbers))
        self.count += lines

    def read(self, descriptor: int | None = None) -> list[int]:
        text = b""
        while piece := read_kept(self.reading if descriptor is None else descriptor, 1000):
            text += piece
        return [int(line) for line in text.splitlines()]

    def read_anew(self) -> list[int]:
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            return self.read(descriptor)
        finally:
            os.close(descriptor)

    def on_disk(self) -> int:
        return self.path.stat().st_blocks * 512


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "console.log")
    yield made
    os.close(made.writing)
    os.close(made.reading)


def test_a_short_one_stays_whole(log: Log) -> None:
    log.write(KEPT // LINE)
    trim(log.path, KEPT)
    assert log.read_anew() == list(range(log.count))


def test_of_a_long_one_the_newest_is_kept_and_the_disk_gets_the_rest_back(log: Log) -> None:
    for _ in range(20):
        log.write(KEPT // LINE)
        trim(log.path, KEPT)
        assert log.on_disk() <= 2 * KEPT + BLOCK
    found = log.read_anew()
    assert found == list(range(found[0], log.count))
    assert len(found) * LINE + BLOCK >= KEPT


def test_who_reads_along_sees_every_line_once(log: Log) -> None:
    seen: list[int] = []
    for _ in range(20):
        log.write(KEPT // LINE)
        seen += log.read()
        trim(log.path, KEPT)
    assert seen + log.read() == list(range(log.count))


def test_who_is_too_slow_goes_on_with_the_oldest_whole_line_that_is_left(log: Log) -> None:
    log.write(3)
    assert log.read() == [0, 1, 2]
    log.write(4 * KEPT // LINE)
    trim(log.path, KEPT)
    found = log.read()
    assert found[0] > 3
    assert found == list(range(found[0], log.count))


def test_one_that_was_started_over_is_read_from_its_beginning(log: Log) -> None:
    """As on filesystems that make no holes."""
    log.write(5)
    assert log.read() == [0, 1, 2, 3, 4]
    os.truncate(log.path, 0)
    log.write(2)
    assert log.read() == [5, 6]
