"""Who is connected, and who has to go when there are too many.

Strangers are those who have not said who they are. They have places of their own, so that they take none from those who have, and
there is always room for one more: the one of whom nothing was heard for longest leaves. So whoever opens connections and is silent
only ever takes places from others who are silent, also where all come from one address.

Those who are known have their share each. Whoever wants more than that loses an own connection that is not in use, or is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Of connections."""

    strangers: int
    # Of one address, which may be that of many: this machine's own, or that of a network's edge.
    per_address: int
    known: int
    per_share: int
    # Of `known`: for those who have to get in whoever else is there.
    reserved: int


def limits_of(room: int, strangers: int | None = None) -> Limits:
    """`room` connections in all."""
    strangers = max(2, min(2500, room // 3) if strangers is None else strangers)
    known = max(2, room - strangers)
    return Limits(strangers, max(2, strangers * 3 // 4), known, max(1, known // 2), known // 10)


class Visitor:
    """One connection. `close` hangs up at once."""

    __slots__ = ("address", "begun", "busy", "close", "share", "since")

    def __init__(self, address: str, close: Callable[[], object], now: float) -> None:
        self.address = address
        self.close = close
        # When something was last heard of it.
        self.since = now
        self.share: str | None = None
        self.busy = 0
        self.begun = False


class Crowd:
    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        # Dicts and not sets: the first is the one of whom nothing was heard for longest.
        self._strangers: dict[Visitor, None] = {}
        self._by_address: dict[str, dict[Visitor, None]] = {}
        self._idle: dict[Visitor, None] = {}
        self._shares: Counter[str] = Counter()
        self.known = 0

    @property
    def strangers(self) -> int:
        return len(self._strangers)

    def arrive(self, address: str, close: Callable[[], object]) -> tuple[Visitor, Visitor | None]:
        """The newcomer, and the one who has to leave for it, if any. The caller closes that one."""
        same = self._by_address.setdefault(address, {})
        leaves = None
        if len(same) >= self.limits.per_address:
            leaves = next(iter(same))
        elif len(self._strangers) >= self.limits.strangers:
            leaves = next(iter(self._strangers))
        if leaves is not None:
            self.leave(leaves)
        visitor = Visitor(address, close, self._clock())
        self._strangers[visitor] = None
        self._by_address.setdefault(address, {})[visitor] = None
        return visitor, leaves

    def recognise(self, visitor: Visitor, share: str, *, privileged: bool = False) -> tuple[str, Visitor | None]:
        """Why not, which is empty where it is known from now on; and the one who has to leave for it, if any. Who is `privileged`
        has no share, and the reserve is theirs."""
        if visitor.share is not None or visitor not in self._strangers:
            return "", None
        leaves = None
        if not privileged and self._shares[share] >= self.limits.per_share:
            leaves = next((one for one in self._idle if one.share == share), None)
            if leaves is None:
                return f"{self._shares[share]} connections of {share} are in use, and there may be {self.limits.per_share}", None
        elif self.known >= self.limits.known - (0 if privileged else self.limits.reserved):
            leaves = next(iter(self._idle), None)
            if leaves is None:
                return f"{self.known} connections are in use, and there may be no more", None
        if leaves is not None:
            self.leave(leaves)
        self._forget_stranger(visitor)
        visitor.share = share
        self._shares[share] += 1
        self.known += 1
        if not visitor.busy:
            self._idle[visitor] = None
        return "", leaves

    def begin(self, visitor: Visitor) -> None:
        """A request has come."""
        visitor.busy += 1
        visitor.begun = True
        self._idle.pop(visitor, None)
        self._heard_of(visitor)

    def end(self, visitor: Visitor) -> None:
        visitor.busy -= 1
        if visitor.share is None:
            self._heard_of(visitor)
        elif not visitor.busy and self._shares.get(visitor.share):
            self._idle[visitor] = None

    def leave(self, visitor: Visitor) -> None:
        """Twice is once."""
        if visitor.share is None:
            self._forget_stranger(visitor)
            return
        share, visitor.share = visitor.share, None
        self._idle.pop(visitor, None)
        self.known -= 1
        self._shares[share] -= 1
        if not self._shares[share]:
            del self._shares[share]

    def someone_to_spare(self) -> Visitor | None:
        """Where places have run out although nobody had too many: a stranger, else one whose connection is not in use."""
        visitor = next(iter(self._strangers), None) or next(iter(self._idle), None)
        if visitor is not None:
            self.leave(visitor)
        return visitor

    def silent_since(self, moment: float) -> list[Visitor]:
        """Strangers who came before that and have asked for nothing yet."""
        found: list[Visitor] = []
        for visitor in self._strangers:
            if visitor.since > moment:
                break
            if not visitor.begun:
                found.append(visitor)
        return found

    def _heard_of(self, visitor: Visitor) -> None:
        if visitor in self._strangers:
            visitor.since = self._clock()
            for line in (self._strangers, self._by_address[visitor.address]):
                del line[visitor]
                line[visitor] = None

    def _forget_stranger(self, visitor: Visitor) -> None:
        if self._strangers.pop(visitor, self) is self:
            return
        same = self._by_address[visitor.address]
        del same[visitor]
        if not same:
            del self._by_address[visitor.address]
