"""Who unpacks what anybody may have sent: a child that can do nothing else, and does not outlive its import."""

from __future__ import annotations

import gzip
import lzma
import os
import pwd
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from herder.nodes.imports import unpacking
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.unpacking import Unpacker

MIB = 1024**2
DISK = os.urandom(MIB) + bytes(8 * MIB)


@asynccontextmanager
async def unpacker() -> AsyncGenerator[Unpacker]:
    async with aclosing(Unpacker()) as made:
        yield made


async def fed(made: Unpacker, packed: bytes, piece: int) -> bytes:
    found = [part for start in range(0, len(packed), piece) async for part in made.feed(packed[start : start + piece])]
    return b"".join(found)


def about(pid: int) -> dict[str, list[str]]:
    """What the kernel says of it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
async def test_it_is_unpacked_by_a_child_that_can_do_nothing_else(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(DISK)
    async with unpacker() as made:
        first = await fed(made, packed[:-1], 100_000)
        pid = made.pid
        assert pid is not None and pid != os.getpid()
        kernel = about(pid)
        uid = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
        assert set(kernel["Uid"]) == {str(uid)}
        assert (kernel["NoNewPrivs"], kernel["Seccomp"]) == (["1"], ["2"])
        assert int(kernel["CapEff"][0], 16) == 0 or os.geteuid() != 0
        limits = Path(f"/proc/{pid}/limits").read_text()
        assert f"Max address space         {unpacking.MEMORY}" in limits
        assert {os.readlink(one)[:5] for one in Path(f"/proc/{pid}/fd").iterdir()} <= {"pipe:", "/dev/"}, "no file of ours"
        with pytest.raises(ImportFailed, match="its end is missing"):
            made.end()
        assert first + await fed(made, packed[-1:], 1) == DISK
        assert made.end() == b""
    assert not Path(f"/proc/{pid}").exists()


async def test_what_is_behind_the_end_is_left_out_and_what_is_not_packed_goes_through() -> None:
    async with unpacker() as made:
        assert await fed(made, gzip.compress(b"disk") + b"more", 7) == b"disk"
        assert made.end() == b""
    async with unpacker() as made:
        assert await fed(made, DISK, MIB) == DISK
        assert (made.packed, made.pid) == (False, None)
    async with unpacker() as made:
        assert await fed(made, b"abc", 1) == b""
        assert made.end() == b"abc"


async def test_a_child_that_dies_or_hangs_is_a_failed_import(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(os.urandom(MIB))
    for number, words in ((9, "it was ended by SIGKILL"), (19, "nothing came of it")):
        monkeypatch.setattr(unpacking, "PATIENCE", 60.0 if number == 9 else 0.3)
        async with unpacker() as made:
            await fed(made, packed[:1000], 1000)
            assert made.pid is not None
            os.kill(made.pid, number)
            with pytest.raises(ImportFailed, match=words):
                await fed(made, packed[1000:], MIB)


async def test_a_bomb_takes_no_more_memory_than_it_may() -> None:
    """A dictionary of 1.5 GiB, which xz would reserve before the first byte."""
    big = lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 4 * MIB}])
    # The dictionary's size is one byte of the header of the first block, which has a checksum of its own.
    header = bytearray(big[12:24])
    place = header.index(b"\x21\x01") + 2
    header[place] = 38
    header[8:12] = _crc32(bytes(header[:8]))
    async with unpacker() as made:
        with pytest.raises(ImportFailed, match="cannot be unpacked: Memory usage limit"):
            await fed(made, big[:12] + bytes(header) + big[24:], MIB)


def _crc32(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")
