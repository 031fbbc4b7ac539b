"""The transport of a leader: before each write it looks whether we still lead.

Cancelling the work at the end of a term is not enough. A process that was stopped for a minute goes on where it was, and may come
to its next write before it comes to the news that its term is over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from herder.kube.errors import NotLeading
from herder.kube.transport import Call, Reply, Transport


class FencedTransport:
    def __init__(self, transport: Transport, leads: Callable[[], bool]) -> None:
        self._transport = transport
        self._leads = leads

    async def send(self, call: Call) -> Reply:
        if call.method != "GET" and not self._leads():
            raise NotLeading(f"{call.method} {call.path}: not sent, because somebody else may lead by now")
        return await self._transport.send(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._transport.stream(call)

    async def close(self) -> None:
        await self._transport.close()
