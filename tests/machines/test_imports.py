"""Volumes that are really filled, by the agent of a node, from a server that may misbehave."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from herder.api import labels
from tests.engines.engine import Engine
from tests.engines.processes import Child
from tests.engines.resources import CLAIMS, STORAGE_CLASSES
from tests.machines.agent import run_agent
from tests.machines.herd import DATA_VOLUMES, Herd, Json
from tests.machines.volumes import becomes, copied, fetched, make, volume_is_gone, volume_of

CONTENT = os.urandom(4 * 1024 * 1024)


class Slow:
    """Serves half of the image, and the rest when it is let."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = 0
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if request.path == "/nothing":
            return web.Response(status=404)
        response = web.StreamResponse(headers={"Content-Length": str(len(CONTENT))})
        await response.prepare(request)
        await response.write(CONTENT[: len(CONTENT) // 2])
        await self.go.wait()
        await response.write(CONTENT[len(CONTENT) // 2 :])
        return response


@pytest.fixture
async def slow() -> AsyncIterator[Slow]:
    server = Slow()
    application = web.Application()
    application.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    server.go.set()
    await runner.cleanup()


@pytest.fixture
async def on_agent(herd: Herd, storage: str) -> Callable[[Json], Json]:
    """The same DataVolume, on the storage of the test's own node."""
    body = {"metadata": {"name": storage}, "provisioner": labels.PROVISIONER, "parameters": {"storage": storage}}
    (await herd.api.create(STORAGE_CLASSES, body)).ok  # noqa: B018
    return lambda spec: {**spec, "storage": {**spec["storage"], "storageClassName": storage}}


@pytest.fixture
def agent(engine: Engine, storage: str, tmp_path: Path) -> Iterator[Child]:
    with run_agent(engine, storage, tmp_path) as running:
        yield running


def disks(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "storage").glob("*/disk.img"))


async def test_an_image_comes_onto_the_node_and_goes_with_its_volume(
    herd: Herd, on_agent: Callable[[Json], Json], agent: Child, slow: Slow, tmp_path: Path
) -> None:
    slow.go.set()
    await make(herd, on_agent(fetched(f"{slow.url}/disk.img", "8Mi")))
    await becomes(herd, "Succeeded")
    name = (await volume_of(herd))["metadata"]["name"]
    assert disks(tmp_path) == [tmp_path / "storage" / name / "disk.img"]
    assert disks(tmp_path)[0].read_bytes() == CONTENT + bytes(4 * 1024 * 1024)
    await make(herd, on_agent(copied("disk")), "copy")
    await becomes(herd, "Succeeded", "copy")
    copy = (await volume_of(herd, "copy"))["metadata"]["name"]
    await herd.delete("disk", DATA_VOLUMES)
    await herd.gone(CLAIMS, "disk")
    await volume_is_gone(herd, name)
    assert disks(tmp_path) == [tmp_path / "storage" / copy / "disk.img"]
    assert disks(tmp_path)[0].read_bytes()[: len(CONTENT)] == CONTENT


async def test_an_agent_that_is_killed_on_the_way_leaves_nothing_half_and_starts_over(
    herd: Herd, engine: Engine, storage: str, on_agent: Callable[[Json], Json], slow: Slow, tmp_path: Path
) -> None:
    with run_agent(engine, storage, tmp_path):
        await make(herd, on_agent(fetched(f"{slow.url}/disk.img", "8Mi")))
        await becomes(herd, "ImportInProgress", progress="50.0%")
    assert disks(tmp_path) == []
    slow.go.set()
    with run_agent(engine, storage, tmp_path):
        await becomes(herd, "Succeeded", restartCount=0)
        assert disks(tmp_path)[0].read_bytes()[: len(CONTENT)] == CONTENT
    assert slow.asked == 2


async def test_a_source_that_is_not_there_fails_with_the_servers_answer(
    herd: Herd, on_agent: Callable[[Json], Json], agent: Child, slow: Slow, tmp_path: Path
) -> None:
    await make(herd, on_agent(fetched(f"{slow.url}/nothing")))
    failed = await becomes(herd, "Failed", reason="SourceNotFound")
    assert "answered 404" in failed["status"]["message"]
    assert slow.asked == 3
    assert disks(tmp_path) == []


async def test_the_machine_itself_is_no_source_unless_that_is_allowed(
    herd: Herd, engine: Engine, storage: str, on_agent: Callable[[Json], Json], slow: Slow, tmp_path: Path
) -> None:
    with run_agent(engine, storage, tmp_path, allow_local=False):
        await make(herd, on_agent(fetched(f"{slow.url}/disk.img")))
        failed = await becomes(herd, "Failed", reason="SourceForbidden", restartCount=0)
        assert "127.0.0.1" in failed["status"]["message"]
    assert slow.asked == 0


async def test_a_download_that_nobody_wants_any_more_is_ended(
    herd: Herd, on_agent: Callable[[Json], Json], agent: Child, slow: Slow, tmp_path: Path
) -> None:
    await make(herd, on_agent(fetched(f"{slow.url}/disk.img", "8Mi")))
    await becomes(herd, "ImportInProgress", progress="50.0%")
    name = (await volume_of(herd))["metadata"]["name"]
    await herd.delete("disk", DATA_VOLUMES)
    await herd.gone(CLAIMS, "disk")
    await volume_is_gone(herd, name)
    assert list((tmp_path / "storage").iterdir()) == []
