"""A link between the agents of one machine: a socket in a folder that only they may enter."""

from __future__ import annotations

import asyncio
from pathlib import Path

from herder.nodes.moving.link import Answering, Unreachable
from herder.nodes.moving.messages import Answer, Request
from herder.nodes.moving.streams import Caller, Server, Streams
from herder.nodes.runtimes.qemu import qmp

SCHEME = "unix:"


class UnixLink:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._caller = Caller()
        self._server = Server()

    @property
    def address(self) -> str:
        return f"{SCHEME}{self._path}"

    @property
    def closed(self) -> str:
        return ""

    async def open(self, answering: Answering) -> None:
        """The folder's rights say who may come in; who can is asked nothing more."""

        async def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._server.take((reader, writer), answering, None)

        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._server.began(await asyncio.start_unix_server(came, sock=qmp.listen(self._path)))

    async def ask(self, address: str, node: str, request: Request) -> Answer:
        path = Path(address.removeprefix(SCHEME))
        if not address.startswith(SCHEME) or not self._is_agent(path):
            raise Unreachable(f"this node reaches only those of its own machine, and {address} is none of them")

        async def dial() -> Streams:
            return await asyncio.open_unix_connection(sock=qmp.connect(path))

        return await self._caller.ask(address, dial, request)

    def _is_agent(self, path: Path) -> bool:
        """Each node has a folder of its own beside ours. The address stands in an annotation: it must not lead to just any socket
        of this machine, which we may open and others may not."""
        return path.name == self._path.name and path.parent.parent == self._path.parent.parent and ".." not in path.parts

    async def close(self) -> None:
        self._caller.close()
        await self._server.close()
        self._path.unlink(missing_ok=True)
