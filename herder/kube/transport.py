"""How requests get to an API server: one interface for TCP, unix sockets and a server in the same process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec


class Call(msgspec.Struct, frozen=True):
    """One request. The query is not yet encoded; the transport adds who we are."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"
    accept: str = "application/json"
    # Seconds until an answer has to be there; None for as long as it takes.
    patience: float | None = 30.0


class Reply(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    warnings: tuple[str, ...] = ()


class Transport(Protocol):
    """Raises `Unreachable` when there is no whole answer; an answer that says no is a Reply like every other."""

    async def send(self, call: Call) -> Reply: ...

    def stream(self, call: Call) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """An answer without an end, in pieces as they come. Entering it raises the ApiStatusError of an answer that says no; the
        pieces end when the server ends the answer, and raise `Unreachable` when it breaks off."""
        ...

    async def close(self) -> None: ...
