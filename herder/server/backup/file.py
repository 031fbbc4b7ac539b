"""The file of a backup: lines of JSON, compressed; the last one holds a checksum of all others (docs/backup.md).

It is read as a whole before anything is done with it: what was cut off, changed or made by something else is refused.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple

import msgspec

FORMAT = 1
# No object and no key is longer; what is longer is not ours.
LONGEST_LINE = 8 * 1024 * 1024
# Quick: a backup should not take the processor from the engine beside it.
COMPRESSION = 1


class BackupError(Exception):
    """The file cannot be used; the text is a sentence for a person."""


class Header(msgspec.Struct, rename={"format": "herder-backup"}):
    """`identity`: of the store that it was made from; `revision`: the resourceVersion that it shows."""

    format: int
    created: str
    identity: str
    revision: int


class _Line(msgspec.Struct, omit_defaults=True):
    kind: str = ""
    object: msgspec.Raw = msgspec.Raw()
    file: str = ""
    data: bytes = b""
    end: bool = False
    objects: int = 0
    sha256: str = ""


class Backup(NamedTuple):
    header: Header
    objects: list[tuple[str, bytes]]
    files: dict[str, bytes]


def object_line(kind: str, raw: bytes) -> bytes:
    return b'{"kind":' + msgspec.json.encode(kind) + b',"object":' + raw + b"}\n"


def end_line(objects: int, sha256: str = "") -> bytes:
    return msgspec.json.encode(_Line(end=True, objects=objects, sha256=sha256)) + b"\n"


class BackupWriter:
    """Under another name until it is whole and on the disk; readable by nobody else, because secrets and keys are in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._scratch = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._hash = hashlib.sha256()
        self._objects = 0
        self._finished = False

    def __enter__(self) -> BackupWriter:
        descriptor = os.open(self._scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._raw: IO[bytes] = os.fdopen(descriptor, "wb")
        self._packed = gzip.GzipFile("", "wb", COMPRESSION, self._raw, mtime=0)
        return self

    def line(self, line: bytes, is_object: bool = False) -> None:
        self._hash.update(line)
        self._packed.write(line)
        self._objects += is_object

    def header(self, header: Header) -> None:
        self.line(msgspec.json.encode(header) + b"\n")

    def file(self, name: str, data: bytes) -> None:
        self.line(msgspec.json.encode(_Line(file=name, data=data)) + b"\n")

    @property
    def objects(self) -> int:
        return self._objects

    def finish(self) -> None:
        self._packed.write(end_line(self._objects, self._hash.hexdigest()))
        self._packed.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        self._raw.close()
        os.replace(self._scratch, self._path)
        self._finished = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._finished:
            self._raw.close()
            self._scratch.unlink(missing_ok=True)


# --- reading ---------------------------------------------------------------------------------------------------------------------


def is_backup(path: Path) -> bool:
    try:
        return next(_lines(path), b"").startswith(b'{"herder-backup":')
    except BackupError:
        return False


def read_backup(path: Path) -> Backup:
    """Blocking."""
    lines = _lines(path)
    first = next(lines, b"")
    header = _header(path, first)
    reading = _Reading(path, first)
    for line in lines:
        reading.take(line)
    reading.check_whole()
    return Backup(header, reading.objects, reading.files)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(LONGEST_LINE):
                yield line
    except (gzip.BadGzipFile, zlib.error):
        raise BackupError(f"{path} is not a herder backup, or it is damaged") from None
    except EOFError:
        raise BackupError(f"{path} is not whole: it ends in the middle") from None
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror or error}") from None


def _header(path: Path, line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except msgspec.MsgspecError:
        raise BackupError(f"{path} is not a herder backup") from None
    if header.format > FORMAT:
        raise BackupError(
            f"{path} was made by a newer version of herder (backup format {header.format}, this one knows {FORMAT}); "
            "use that version"
        )
    return header


class _Reading:
    def __init__(self, path: Path, first: bytes) -> None:
        self._path = path
        self._hash = hashlib.sha256(first)
        self._whole = False
        self.objects: list[tuple[str, bytes]] = []
        self.files: dict[str, bytes] = {}

    def take(self, line: bytes) -> None:
        if self._whole:
            raise BackupError(f"{self._path} is damaged: something follows its end")
        try:
            read = msgspec.json.decode(line, type=_Line)
        except msgspec.MsgspecError:
            raise BackupError(f"{self._path} is damaged: a line of it cannot be read") from None
        if read.end:
            self._check(read)
            return
        self._hash.update(line)
        if read.file:
            self.files[read.file] = read.data
        else:
            self.objects.append((read.kind, bytes(read.object)))

    def _check(self, end: _Line) -> None:
        if end.objects != len(self.objects) or end.sha256 != self._hash.hexdigest():
            raise BackupError(f"{self._path} is damaged: its checksum does not fit its contents")
        self._whole = True

    def check_whole(self) -> None:
        if not self._whole:
            raise BackupError(f"{self._path} is not whole: it ends in the middle")
