"""The copies that leave one simulated node, sharing its bandwidth."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from herder.api.defaults import MAX_DOWNTIME_MS
from herder.api.kinds.migration_state import MigrationProgress, PolicySettings
from herder.api.quantity import parse_quantity
from herder.nodes.runtimes.simulated import copying
from herder.nodes.runtimes.simulated.copying import Copy
from herder.nodes.runtimes.simulated.guest import Guest
from herder.nodes.runtimes.simulated.network import LATENCY, Arrival, Network


class Move:
    """One guest on its way out."""

    def __init__(
        self, guest: Guest, migration: str, arrival: Arrival, settings: PolicySettings, copy: Copy, now: float, began_at: float
    ) -> None:
        self.guest = guest
        self.migration = migration
        self.began_at = began_at
        # All is sent, and the target has not said yet that it is there.
        self.sent = False
        # How long the guest had run when it was stopped.
        self.ran = guest.ran
        self.sent_at = 0.0
        self.arrival = arrival
        self.settings = settings
        self.copy = copy
        self.settled = now
        limit = settings.bandwidth_per_migration
        self.limit = float(parse_quantity(limit).value()) if limit else 0.0

    def bandwidth(self, share: float) -> float:
        return min(share, self.limit) if self.limit else share

    def settle(self, now: float, share: float) -> None:
        """Brings the copy up to now, at the bandwidth that it had since it was last looked at."""
        downtime = (self.settings.max_downtime_ms or MAX_DOWNTIME_MS) / 1000
        self.copy = copying.advance(self.copy, now - self.settled, self.bandwidth(share), self.settings, downtime)
        self.settled = now

    def decides_in(self, share: float) -> float:
        return copying.round_ends_in(self.copy, self.bandwidth(share))


class Moves:
    def __init__(
        self,
        network: Network,
        sent: Callable[[Move], None],
        ended: Callable[[Move], None],
        failed: Callable[[Move, str], None],
    ) -> None:
        """`sent` when the last byte is at the target, `ended` when the source knows of it."""
        self._network = network
        self._sent = sent
        self._ended = ended
        self._failed = failed
        self._moves: dict[str, Move] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, guest: Guest, migration: str, arrival: Arrival, settings: PolicySettings, began_at: float) -> None:
        memory = guest.started.memory_bytes
        working_set = guest.settings.working_set if guest.settings.working_set is not None else memory
        load = copying.Load(memory, guest.settings.dirty_rate, min(working_set, memory))
        self._settle()
        copy = copying.begin(load)
        if guest.state == "Paused":
            copy = copying.to_paused(copy)
        self._moves[guest.order.guest] = Move(guest, migration, arrival, settings, copy, self._time(), began_at)
        self._plan()

    def find(self, guest: str) -> Move | None:
        return self._moves.get(guest)

    def progress(self, guest: str) -> MigrationProgress | None:
        move = self._moves.get(guest)
        if move is None:
            return None
        self._settle()
        return copying.progress(move.copy, move.bandwidth(self._share()))

    def break_off(self, guest: str, why: str) -> None:
        """The connection is lost."""
        if move := self.drop(guest):
            self._failed(move, why)

    def all(self) -> list[Move]:
        return list(self._moves.values())

    def change(self, guest: str, how: Callable[[Copy], Copy]) -> None:
        if move := self._moves.get(guest):
            self._settle()
            move.copy = how(move.copy)
            self._plan()

    def drop(self, guest: str) -> Move | None:
        self._settle()
        move = self._moves.pop(guest, None)
        self._plan()
        return move

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _share(self) -> float:
        return self._network.share(len(self._moves))

    def _settle(self) -> None:
        share, now = self._share(), self._time()
        for move in self._moves.values():
            move.settle(now, share)

    def _plan(self) -> None:
        """One timer for all: for the next thing that has to be decided."""
        self.close()
        if self._moves:
            soonest = min(self._next(move) for move in self._moves.values())
            self._timer = asyncio.get_running_loop().call_later(max(soonest, 1e-6), self._due)

    def _next(self, move: Move) -> float:
        if move.sent:
            return max(0.0, move.sent_at + LATENCY - self._time())
        if self._is_to_fail(move) and not self._has_failed(move):
            left = move.copy.load.memory * (move.guest.settings.fails_at_percent / 100 - move.copy.best)
            return max(0.0, left / move.bandwidth(self._share()))
        return move.decides_in(self._share())

    def _due(self) -> None:
        self._settle()
        for guest, move in list(self._moves.items()):
            if self._has_failed(move):
                del self._moves[guest]
                self._failed(move, "the connection to the target broke, as it was told to")
            elif move.sent and self._time() >= move.sent_at + LATENCY:
                del self._moves[guest]
                self._ended(move)
            elif move.copy.done and not move.sent:
                move.sent, move.sent_at = True, self._time()
                self._sent(move)
        self._plan()

    def _is_to_fail(self, move: Move) -> bool:
        return move.guest.settings.fails_at == "migration"

    def _has_failed(self, move: Move) -> bool:
        # A hair's breadth, for what the timer came too early.
        return self._is_to_fail(move) and move.copy.best + 1e-6 >= min(0.99, move.guest.settings.fails_at_percent / 100)

    def _time(self) -> float:
        return asyncio.get_running_loop().time()
