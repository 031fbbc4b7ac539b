"""A console over a WebSocket, in Kubernetes' channels: the first byte of each message says which stream it is of."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from herder.nodes.runtimes.base import Console

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
# Of the newer protocol: the stream that the second byte names has ended.
CLOSE = 255
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
SUCCESS: dict[str, Any] = {"metadata": {}, "status": "Success"}


def failure(sentence: str) -> dict[str, Any]:
    return {"metadata": {}, "status": "Failure", "reason": "InternalError", "message": sentence, "code": 500}


async def join(socket: web.WebSocketResponse, console: Console, *, typing: bool) -> None:
    """Until the client leaves, or the guest has ended: then the client is told so."""
    # As a kubelet does: whoever waits for the console to be there sees this.
    await socket.send_bytes(bytes((STDOUT,)))
    showing = asyncio.create_task(_show(socket, console))
    hearing = asyncio.create_task(_hear(socket, console if typing else None))
    try:
        await asyncio.wait([showing, hearing], return_when=asyncio.FIRST_COMPLETED)
        if showing.done():
            await tell(socket, SUCCESS if showing.exception() is None else failure("the console broke off"))
    finally:
        for task in (showing, hearing):
            task.cancel()
        await asyncio.gather(showing, hearing, return_exceptions=True)
        await console.close()


async def tell(socket: web.WebSocketResponse, status: dict[str, Any]) -> None:
    """How it ended; nothing comes after it."""
    await socket.send_bytes(bytes((ERROR,)) + msgspec.json.encode(status))
    await socket.close()


async def _show(socket: web.WebSocketResponse, console: Console) -> None:
    async for piece in console.read():
        await socket.send_bytes(bytes((STDOUT,)) + piece)


async def _hear(socket: web.WebSocketResponse, console: Console | None) -> None:
    """A serial port has no size and no end of input: both are heard and forgotten."""
    async for message in socket:
        if console is not None and message.type is WSMsgType.BINARY and message.data[:1] == bytes((STDIN,)):
            await console.write(message.data[1:])
