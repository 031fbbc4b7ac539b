"""The embedded engine inside a virtual loop, with clients whose connection can be cut, slowed or listened to."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from herder.api.registry import KindInfo
from herder.app.inside import InsideTransport
from herder.kube.client import Client
from herder.kube.errors import Unreachable
from herder.kube.transport import Call, Reply, Transport
from herder.server.request import ENGINE, User
from herder.server.running import Running
from herder.server.store import Database, InlineWriter, Store
from tests.unit.kube.virtual import VirtualWorld


class Line:
    """A transport that a test has in its hands."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.cut = False
        # Done by the server, but the answer does not come back.
        self.deaf = False
        self.seconds = 0.0
        # What calls of a path that ends so are answered with.
        self.refusals: dict[str, Exception] = {}
        self.calls: list[Call] = []

    async def send(self, call: Call) -> Reply:
        self.calls.append(call)
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.cut:
            raise Unreachable("the line is cut")
        self._refuse(call)
        reply = await self._transport.send(call)
        if self.deaf:
            raise Unreachable("the answer broke off")
        return reply

    def stream(self, call: Call) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        self._refuse(call)
        return self._transport.stream(call)

    def _refuse(self, call: Call) -> None:
        for end, refusal in self.refusals.items():
            if call.path.endswith(end):
                raise refusal

    async def close(self) -> None:
        await self._transport.close()

    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.method != "GET"]


class Place:
    def __init__(self, running: Running) -> None:
        self._running = running
        # What nodes were found to use, for tests that say it themselves.
        self.samples = running.engine.samples

    def line(self, user: User = ENGINE) -> Line:
        return Line(InsideTransport(self._running.router, "test", user=user))

    def client(self) -> Client:
        return Client(self.line(), "test")


@asynccontextmanager
async def engine_in_virtual_time(world: VirtualWorld, kinds: Sequence[KindInfo] = ()) -> AsyncGenerator[Place]:
    """`kinds` are those of ours that it knows: each takes a moment."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "herder.db")
        running = Running(Store(database, InlineWriter(database)), world, kinds=kinds)
        await running.start()
        try:
            yield Place(running)
        finally:
            await running.stop()
