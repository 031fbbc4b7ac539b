"""A disk that is really full: the writer is told, readers notice nothing, and it goes on once there is room."""

import asyncio
import os
import signal
import sqlite3
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.crash.trees import children_of
from tests.engines.api import Api, Reply, connect
from tests.engines.embedded import run_embedded
from tests.engines.resources import CONFIG_MAPS
from tests.engines.waiting import eventually

pytestmark = pytest.mark.slow
NAMESPACE = "default"
MEGABYTES = 32


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """Where the data directory will be: a filesystem of its own."""
    data = tmp_path / "data"
    data.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(data)]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here: that needs root")
    yield data
    subprocess.run(["umount", "-l", str(data)], check=True)


@contextmanager
def filled(disk: Path) -> Generator[None]:
    """Not a byte left; room again afterwards."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 65536)
        except OSError:
            pass
    try:
        yield
    finally:
        ballast.unlink()


def config_map(name: str, size: int) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": {"filler": "x" * size}}


async def write_until_refused(api: Api, prefix: str) -> tuple[list[str], Reply]:
    """Several at a time, until one is refused: the names that were acknowledged, and the refusal."""
    stored: list[str] = []
    for burst in range(100):
        names = [f"{prefix}-{burst}-{index}" for index in range(8)]
        replies = await asyncio.gather(*(api.create(CONFIG_MAPS, config_map(name, 30_000), NAMESPACE) for name in names))
        stored += [name for name, reply in zip(names, replies, strict=True) if reply.code == 201]
        refused = [reply for reply in replies if reply.code != 201]
        if refused:
            return stored, refused[0]
    raise AssertionError("the disk is not full")


@asynccontextmanager
async def running(folder: Path) -> AsyncGenerator[Api]:
    # That of the life before names a port that is gone.
    (folder / "kubeconfig").unlink(missing_ok=True)
    with run_embedded(folder) as engine:
        async with connect(engine) as api:
            yield api


async def names(api: Api) -> set[str]:
    return {name for name in (await api.list(CONFIG_MAPS, NAMESPACE)).names if name.startswith("cm")}


async def test_a_full_disk_refuses_writes_and_nothing_else(tmp_path: Path, small_disk: Path) -> None:
    async with running(tmp_path) as api:
        (await api.create(CONFIG_MAPS, config_map("cm-before", 10), NAMESPACE)).ok  # noqa: B018
        listed = (await api.list(CONFIG_MAPS, NAMESPACE)).ok
        async with api.watch(CONFIG_MAPS, NAMESPACE, resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
            with filled(small_disk):
                stored, refusal = await write_until_refused(api, "cm-full")
                refusal.refused(500, "InternalError")
                assert "full" in refusal.message
                expected = {"cm-before", *stored}
                assert await names(api) == expected
                assert (await api.get(CONFIG_MAPS, "cm-before", NAMESPACE)).code == 200
                # Again: the second failure is like the first.
                again, refusal = await write_until_refused(api, "cm-again")
                expected |= set(again)
                refusal.refused(500, "InternalError")

            async def goes_on() -> bool:
                return (await api.create(CONFIG_MAPS, config_map("cm-after", 30_000), NAMESPACE)).code == 201

            await eventually(goes_on)
            expected.add("cm-after")
            seen = {event.name for event in await watch.until("ADDED", "cm-after")}
            assert {name for name in seen if name.startswith("cm")} == expected - {"cm-before"}
        assert await names(api) == expected
    async with running(tmp_path) as api:
        assert await names(api) == expected
    _check_file(small_disk / "herder.db")


async def test_while_nothing_can_be_stored_the_engine_is_alive_and_not_ready(tmp_path: Path, small_disk: Path) -> None:
    async with running(tmp_path) as api:
        assert (await api.request("GET", "/readyz")).raw == b"ok"
        with filled(small_disk):
            # Nobody writes: it is found out all the same, at the latest when all of the log that can be used again is used.
            stored, refusal = await write_until_refused(api, "cm")
            assert "the disk of the data directory is full: nothing was stored" in refusal.message
            told = await api.request("GET", "/readyz", verbose="")
            assert told.code == 503
            assert told.raw.decode().splitlines() == [
                "[+]ping ok",
                "[-]store failed: the disk of the data directory is full: nothing was stored",
                "[+]start ok",
                "readyz check failed",
            ]
            assert (await api.request("GET", "/readyz/store")).code == 503
            assert (await api.request("GET", "/readyz", exclude="store")).raw == b"ok"
            assert (await api.request("GET", "/livez")).raw == b"ok"
            # A small one may still fit; that does not make it ready.
            await api.create(CONFIG_MAPS, config_map("cm-tiny", 1), NAMESPACE)
            assert (await api.request("GET", "/readyz")).code == 503
            assert set(stored) <= await names(api)

        async def ready() -> bool:
            return (await api.request("GET", "/readyz")).raw == b"ok"

        await eventually(ready)
        (await api.create(CONFIG_MAPS, config_map("cm-after", 200_000), NAMESPACE)).ok  # noqa: B018


async def test_a_disk_that_is_full_already_is_noticed_before_anybody_writes(tmp_path: Path, small_disk: Path) -> None:
    async with running(tmp_path) as api:
        with filled(small_disk):

            async def noticed() -> bool:
                return (await api.request("GET", "/readyz")).code == 503

            await eventually(noticed)
            assert (await api.request("GET", "/livez")).raw == b"ok"


async def test_an_engine_that_is_killed_while_the_disk_is_full_comes_back_and_serves(tmp_path: Path, small_disk: Path) -> None:
    async with running(tmp_path) as api:
        with filled(small_disk):
            stored, _ = await write_until_refused(api, "cm")
            for pid in children_of(os.getpid(), "engine", str(small_disk)):
                os.kill(pid, signal.SIGKILL)

            async def serves() -> bool:
                try:
                    return await names(api) == set(stored)
                except OSError:
                    return False

            await eventually(serves, patience=30)
            assert (await api.create(CONFIG_MAPS, config_map("cm-full", 200_000), NAMESPACE)).code == 500
        (await api.create(CONFIG_MAPS, config_map("cm-after", 200_000), NAMESPACE)).ok  # noqa: B018
        assert await names(api) == {*stored, "cm-after"}
    _check_file(small_disk / "herder.db")


def _check_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
