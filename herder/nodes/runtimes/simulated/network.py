"""The network between simulated nodes: where guests arrive, and how the bandwidth of a node is shared."""

from __future__ import annotations

from typing import Protocol

BANDWIDTH = 1.25e9  # bytes per second of one node, each way: 10 Gbit
# Seconds from the last byte's arrival until the source knows of it.
LATENCY = 0.0005


class Arrival(Protocol):
    """A guest that waits for its memory."""

    def arrived(self, *, ran: float, whole: bool) -> None:
        """What it needs to run is there: all of its memory or, by post-copy, enough of it. It has run for so long."""
        ...

    def broken_off(self, why: str) -> None: ...


class Network:
    """All simulated nodes of a process. Addresses are looked up here, as sockets are elsewhere."""

    def __init__(self, bandwidth: float = BANDWIDTH) -> None:
        self.bandwidth = bandwidth
        self._waiting: dict[str, Arrival] = {}

    def listen(self, address: str, arrival: Arrival) -> None:
        self._waiting[address] = arrival

    def leave(self, address: str) -> None:
        self._waiting.pop(address, None)

    def find(self, address: str) -> Arrival | None:
        return self._waiting.get(address)

    def share(self, flows: int) -> float:
        """What each of this many copies out of one node gets."""
        return self.bandwidth / max(1, flows)
