"""How the agents of two nodes talk to each other. The API server is not in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from herder.nodes.moving.messages import Answer, Request

# The answer to a request; the name is that of the node that asks, where the link can tell.
Answering = Callable[[Request, str | None], Awaitable[Answer]]


class Unreachable(Exception):
    """Nobody answered. Whether the request was heard is not known: ask again."""


class Impostor(Unreachable):
    """Somebody answered who is not the node that was asked."""


class Link(Protocol):
    @property
    def address(self) -> str:
        """Where the agents of other nodes reach this one; empty for nowhere."""
        ...

    @property
    def closed(self) -> str:
        """Why it is nowhere; empty where it is reached."""
        ...

    async def open(self, answering: Answering) -> None: ...

    async def ask(self, address: str, node: str, request: Request) -> Answer:
        """Of the agent of that node. Raises `Unreachable`."""
        ...

    async def close(self) -> None: ...
