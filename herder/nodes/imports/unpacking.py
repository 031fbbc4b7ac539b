"""Unpacks gzip and xz on the way. What it is shows in its first bytes; names and headers are often wrong."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from typing import Any

from herder.api import reasons
from herder.nodes.imports.failure import ImportFailed

GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
# At once: a small piece can unpack to very much.
STEP = 4 * 1024 * 1024
XZ_MEMORY = 256 * 1024 * 1024


class Unpacker:
    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._gzip: Any = None
        self._xz: lzma.LZMADecompressor | None = None

    @property
    def packed(self) -> bool:
        return self._gzip is not None or self._xz is not None

    def feed(self, piece: bytes) -> Iterator[bytes]:
        if self._head is not None:
            self._head += piece
            if len(self._head) < len(XZ):
                return
            piece, self._head = self._head, None
            self._recognise(piece)
        try:
            yield from self._unpacked(piece)
        except (zlib.error, lzma.LZMAError) as error:
            raise ImportFailed(reasons.NOT_A_DISK_IMAGE, f"the source looks packed, and cannot be unpacked: {error}") from error

    def end(self) -> bytes:
        if self.packed and not self._done():
            raise ImportFailed(reasons.NOT_A_DISK_IMAGE, "the source is packed, and its end is missing")
        rest, self._head = self._head or b"", None
        return rest

    def _recognise(self, head: bytes) -> None:
        if head.startswith(GZIP):
            self._gzip = zlib.decompressobj(31)
        elif head.startswith(XZ):
            self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def _unpacked(self, piece: bytes) -> Iterator[bytes]:
        if self._gzip is not None:
            while piece and not self._gzip.eof:
                yield self._gzip.decompress(piece, STEP)
                piece = self._gzip.unconsumed_tail
        elif self._xz is not None:
            while not self._xz.eof:
                yield self._xz.decompress(piece, STEP)
                piece = b""
                if self._xz.needs_input:
                    return
        else:
            yield piece

    def _done(self) -> bool:
        return self._gzip.eof if self._gzip is not None else self._xz is not None and self._xz.eof
