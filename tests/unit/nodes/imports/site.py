"""A web server that misbehaves as it is told, and imports from it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.guest import SavedGuest
from herder.api.imports import ImportDefinition
from herder.api.world import RealWorld
from herder.nodes.imports import Imports, ImportSettings, StorageFolder
from herder.nodes.imports.work import LocalGuests
from herder.nodes.runtimes.base import GuestStatus, Refused
from herder.rules.plans import plain

VOLUME = "pvc-00000000-0000-4000-8000-000000000001"
OTHER = "pvc-00000000-0000-4000-8000-000000000002"
MIB = 1024 * 1024


class Site:
    """What it serves at each path, and what it was asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        # Paths whose connection is cut once, after so many bytes.
        self.cuts: dict[str, int] = {}
        self.versioned = True
        self.asked: list[web.Request] = []
        self.moved: dict[str, str] = {}
        self.refused: dict[str, int] = {}
        self.port = 0

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        if request.path in self.refused:
            return web.Response(status=self.refused[request.path])
        if request.path in self.moved:
            return web.Response(status=302, headers={"Location": self.moved[request.path]})
        if request.path not in self.files:
            return web.Response(status=404)
        return await self._send(request, self.files[request.path])

    async def _send(self, request: web.Request, content: bytes) -> web.StreamResponse:
        start = request.http_range.start or 0
        headers = {"Content-Length": str(len(content) - start), **({"ETag": '"one"'} if self.versioned else {})}
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        await response.prepare(request)
        cut = self.cuts.pop(request.path, None)
        await response.write(content[start : start + cut] if cut is not None else content[start:])
        if cut is not None and request.transport is not None:
            request.transport.close()
        return response


@asynccontextmanager
async def running_site() -> AsyncGenerator[Site]:
    site = Site()
    application = web.Application()
    application.router.add_get("/{path:.*}", site.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    server = web.TCPSite(runner, "127.0.0.1", 0)
    await server.start()
    site.port = runner.addresses[0][1]
    try:
        yield site
    finally:
        await runner.cleanup()


class Given:
    """Secrets and ConfigMaps that exist."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, bytes]] = {}

    async def secret(self, namespace: str, name: str) -> dict[str, bytes] | None:
        return self.secrets.get(name)

    async def config_map(self, namespace: str, name: str) -> dict[str, str] | None:
        return None


class Vouched:
    """These tests are about how a volume is filled; who may have it filled is asked in test_verifying.py."""

    async def check(self, pod: Pod, definition: ImportDefinition) -> None:
        pass


class NoGuests:
    """Nobody here has a disk open."""

    def has_open(self, path: Path) -> bool:
        return False

    async def resize(self, path: Path, size: int) -> None:
        pass

    async def save(self, guest: str, instance: str, path: Path | None, told: Callable[[int, int], None]) -> SavedGuest:
        raise Refused(reasons.SAVE_FAILED, "there is no guest here")


class Importing:
    def __init__(self, root: Path, *, allow_local: bool = True, guests: LocalGuests | None = None) -> None:
        self.folder = StorageFolder(root)
        self.given = Given()
        settings = ImportSettings(allow_local=allow_local)
        self.work = Imports(self.folder, RealWorld(), settings, self.given, Vouched(), guests or NoGuests())
        self._changed = asyncio.Event()
        self._count = 0

    async def __aenter__(self) -> "Importing":
        await self.work.open(lambda uid: self._changed.set())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.work.close()

    def pod(self, **definition: Any) -> Pod:
        self._count += 1
        http = definition.pop("http", None)
        content = {"action": "http" if http else "blank", "volume": VOLUME, "capacity": 4 * MIB, **definition}
        made = msgspec.convert({**content, **({"http": http} if http else {})}, ImportDefinition)
        text = msgspec.json.encode(plain(made)).decode()
        metadata = {"name": "importer", "namespace": "n", "uid": f"pod-{self._count}", "annotations": {labels.IMPORT: text}}
        return msgspec.convert({"metadata": metadata}, Pod)

    async def run(self, **definition: Any) -> GuestStatus:
        pod = self.pod(**definition)
        await self.work.start(pod)
        return await self.ended(pod.uid)

    async def ended(self, uid: str) -> GuestStatus:
        async with asyncio.timeout(30):
            while True:
                status = self.work.status(uid)
                assert status is not None
                if status.state != "Running":
                    return status
                await self._changed.wait()
                self._changed.clear()

    async def fetch(self, url: str, capacity: int = 4 * MIB, **http: Any) -> GuestStatus:
        return await self.run(http={"url": url, **http}, capacity=capacity)

    @property
    def content(self) -> bytes:
        return self.folder.disk(VOLUME).read_bytes()

    @property
    def left(self) -> list[str]:
        """What is in the storage folder at all."""
        return sorted(str(one.relative_to(self.folder.root)) for one in self.folder.root.rglob("*") if not one.is_dir())
