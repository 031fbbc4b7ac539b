"""Unpacks what anybody may have sent, and can do nothing else. Run by its path, with nothing but Python itself.

Asked and answered in turn. A question is four bytes that say how long it is, and so much of what is packed. The answers to it are a
letter, four bytes and so much of what the letter says: d for what was unpacked, as often as need be, and then n where more is
needed, e where the end was reached, x with what is wrong.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import confined  # pyright: ignore[reportImplicitRelativeImport, reportMissingImports]

# At once: a small piece can unpack to very much.
STEP = 1024 * 1024
XZ_MEMORY = 256 * 1024 * 1024
Feed = Callable[[bytes], Iterator[bytes]]


class Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        while piece and not self._inner.eof:
            yield self._inner.decompress(piece, STEP)
            piece = self._inner.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._inner.eof


class Xz:
    def __init__(self) -> None:
        self._inner = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        while not self._inner.eof:
            yield self._inner.decompress(piece, STEP)
            piece = b""
            if self._inner.needs_input:
                return

    @property
    def eof(self) -> bool:
        return self._inner.eof


def serve(unpacker: Gzip | Xz) -> None:
    while head := _read(4):
        piece = _read(int.from_bytes(head))
        try:
            for unpacked in unpacker.feed(piece):
                if unpacked:
                    _answer(b"d", unpacked)
        except (zlib.error, lzma.LZMAError) as error:
            _answer(b"x", str(error).encode())
        else:
            _answer(b"e" if unpacker.eof else b"n", b"")


def _read(size: int) -> bytes:
    """So many bytes; fewer at the end."""
    parts: list[bytes] = []
    while size and (part := os.read(0, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _answer(letter: bytes, data: bytes) -> None:
    rest = memoryview(letter + len(data).to_bytes(4) + data)
    while rest:
        rest = rest[os.write(1, rest) :]


if __name__ == "__main__":
    about = json.loads(sys.argv[1])
    made = Xz() if about["kind"] == "xz" else Gzip()
    # All that is needed is loaded by now: no file has to be read any more.
    confined.confine(about["settings"], (), ())
    serve(made)
