"""The transport of one life of one machine: what it says goes over the wire, with its faults, to the simulation's own server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from herder.app.inside import InsideTransport
from herder.kube.errors import ApiStatusError, Expired, Unreachable
from herder.kube.transport import Call, Reply
from herder.server.request import User
from tests.simulation.machine import Machine
from tests.simulation.server import ApiServer
from tests.simulation.trace import Trace, fingerprint
from tests.simulation.wire import Connection, Go, Sent, Wire

Latency = Callable[[], float]
REFUSED_AFTER = 0.01


class SimulatedTransport:
    def __init__(
        self,
        machine: Machine,
        server: ApiServer,
        server_machine: Machine,
        wire: Wire,
        trace: Trace | None,
        user: User,
        latency: Latency | None,
    ) -> None:
        self._machine = machine
        self._life = machine.lives
        self._server = server
        self._server_machine = server_machine
        self._wire = wire
        self._trace = trace
        self._user = user
        self._latency = latency
        self._loop = asyncio.get_running_loop()

    async def send(self, call: Call) -> Reply:
        self._still_alive()
        sent = self._wire.sent(self._machine, call)
        await self._travel()
        try:
            reply = await self._around(sent)
        except Unreachable as error:
            self._note(call, f"unreachable: {error}")
            raise
        await self._travel()
        self._note(call, f"{reply.status} {fingerprint(reply.body)}")
        for listener in self._wire.heard:
            listener(sent, reply)
        return reply

    async def _around(self, sent: Sent) -> Reply:
        async def serve() -> Reply:
            return await self._serve(sent.call)

        go: Go = serve
        for around in self._wire.around:
            go = _around(around, sent, go)
        if sent.call.patience is None or not self._wire.around:
            return await go()
        try:
            async with asyncio.timeout(sent.call.patience):
                return await go()
        except TimeoutError as error:
            raise Unreachable(f"no answer within {sent.call.patience} s") from error

    async def _serve(self, call: Call) -> Reply:
        inside = await self._reach()
        life = self._server_machine.lives
        reply = await inside.send(call)
        if self._server_machine.lives != life or self._server.running is None:
            raise Unreachable("the server died before it had answered")
        return reply

    async def _reach(self) -> InsideTransport:
        running = self._server.running
        if running is None or self._wire.is_cut(self._machine, self._loop.time()):
            await asyncio.sleep(REFUSED_AFTER)
            raise Unreachable("connection refused" if running is None else "nobody can be reached from here")
        return InsideTransport(running.router, self._machine.name, user=self._user)

    async def _travel(self) -> None:
        if self._latency is not None:
            await asyncio.sleep(self._latency())
            self._still_alive()

    def _still_alive(self) -> None:
        """A dead process says nothing, whatever its tasks do about their cancellation."""
        if not self._machine.alive or self._machine.lives != self._life:
            raise asyncio.CancelledError(f"{self._machine.name} is dead")

    def _note(self, call: Call, text: str) -> None:
        if self._trace is not None:
            query = "&".join(f"{key}={value}" for key, value in call.query.items())
            self._trace.add(self._machine.name, f"{call.method} {call.path}?{query} {fingerprint(call.body)} -> {text}")

    # Watches.

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncGenerator[AsyncIterator[bytes]]:
        self._still_alive()
        await self._travel()
        inside = await self._reach()
        if self._wire.forgotten:
            self._wire.forgotten -= 1
            raise Expired(410, "Expired", "the resourceVersion for the provided watch is too old")
        connection = Connection()
        opened: asyncio.Future[None] = self._loop.create_future()
        pump = self._server_machine.spawn(_pump(inside, call, connection, opened))
        self._wire.connections.append(connection)
        try:
            await opened
            self._note(call, "watching")
            yield self._pieces(call, connection)
        finally:
            self._wire.connections.remove(connection)
            pump.cancel()

    async def _pieces(self, call: Call, connection: Connection) -> AsyncIterator[bytes]:
        while lines := await connection.take():
            await self._travel()
            while (wait := self._wire.held_until - self._loop.time()) > 0:
                await asyncio.sleep(wait)
                self._still_alive()
            for line in lines:
                if connection.broken:
                    break
                for _ in range(self._copies()):
                    self._note(call, f"event {fingerprint(line)}")
                    yield line
        if connection.broken or self._wire.is_cut(self._machine, self._loop.time()):
            self._note(call, "broken off")
            raise Unreachable("the watch broke off")
        self._note(call, "ended")

    def _copies(self) -> int:
        if not self._wire.doubled:
            return 1
        self._wire.doubled -= 1
        return 2

    async def close(self) -> None:
        pass


def _around(around: Callable[[Sent, Go], object], sent: Sent, go: Go) -> Go:
    return lambda: around(sent, go)  # type: ignore[return-value]


async def _pump(inside: InsideTransport, call: Call, connection: Connection, opened: asyncio.Future[None]) -> None:
    """On the server's side, and of its life: when it dies, the connection breaks."""
    try:
        async with inside.stream(call) as pieces:
            opened.set_result(None)
            async for piece in pieces:
                connection.push(piece)
        connection.end()
    except ApiStatusError as error:
        opened.set_exception(error)
    finally:
        if not opened.done():
            opened.set_exception(Unreachable("the server died before it had answered"))
            opened.exception()
        if not connection.ended:
            connection.break_off()
