"""How long a client may take for its part: to say what it wants, and to take what it is sent. None holds a connection for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager

import msgspec

# What the system takes from us at once, whether the client reads or not. More than that waits in our memory.
LARGE = 64 * 1024


class Patience(msgspec.Struct, frozen=True):
    """In seconds."""

    # From the end of one request, or from connecting, until the next one's head is whole. kube-apiserver waits as long in between.
    head: float = 90.0
    # Of those who have not said who they are: for the handshake, and from connecting until the first head is whole.
    handshake: float = 10.0
    first: float = 20.0
    # For the whole body, and for the whole of an answer or the next piece of a watch: as kube-apiserver's --request-timeout.
    body: float = 60.0
    taking: float = 60.0


class Delivery:
    """What one connection is being sent, and since when."""

    __slots__ = ("since", "transport")

    def __init__(self, transport: asyncio.Transport | None) -> None:
        self.transport = transport
        self.since = 0.0

    def begin(self) -> None:
        self.since = time.monotonic()

    def taken(self) -> None:
        self.since = 0.0

    def drop(self) -> None:
        """A client that does not read would not read that we hang up, either."""
        if self.transport is not None:
            self.transport.abort()


class Deliveries:
    """All of them, looked through now and then: a timer for each piece of each watch would cost more than the pieces."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._all: set[Delivery] = set()

    @contextmanager
    def to(self, transport: asyncio.Transport | None) -> Generator[Delivery]:
        delivery = Delivery(transport)
        self._all.add(delivery)
        try:
            yield delivery
        finally:
            self._all.discard(delivery)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / 4)
            limit = time.monotonic() - self._seconds
            for delivery in [one for one in self._all if 0.0 < one.since < limit]:
                delivery.drop()
