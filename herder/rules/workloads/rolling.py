"""How far a rolling update may go in one step: never under what has to be available, never over what may be there at once.

Only numbers: which set has how many pods, and how many of them count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from herder.api.core.workloads import DeploymentStrategy
from herder.api.int_or_percent import scaled_value

Sizes = dict[str, int]


class Share(msgspec.Struct, frozen=True):
    """One ReplicaSet of a Deployment."""

    name: str
    # How many pods it is to have, how many it has, and how many of these are available.
    size: int
    present: int = 0
    available: int = 0
    created: float = 0.0

    @property
    def occupied(self) -> int:
        """Pods that it is to have, or has still."""
        return max(self.size, self.present)

    @property
    def lasting(self) -> int:
        """Available pods that stay: those beyond its size are on their way out, whatever the status still says."""
        return min(self.available, self.size)


class Limits(msgspec.Struct, frozen=True):
    wanted: int
    surge: int = 0
    unavailable: int = 0

    @property
    def most(self) -> int:
        return self.wanted + self.surge

    @property
    def fewest(self) -> int:
        return self.wanted - self.unavailable


def limits_of(strategy: DeploymentStrategy, wanted: int) -> Limits:
    rolling = strategy.rolling_update
    if strategy.type != "RollingUpdate" or rolling is None:
        return Limits(wanted)
    surge = scaled_value(rolling.max_surge or 0, wanted, round_up=True)
    unavailable = scaled_value(rolling.max_unavailable or 0, wanted, round_up=False)
    if surge == 0 and unavailable == 0:
        # Both may round to nothing, and then nothing could ever move.
        unavailable = 1
    return Limits(wanted, surge, min(unavailable, wanted))


def next_sizes(limits: Limits, new: Share, old: Sequence[Share]) -> Sizes:
    """The sizes that change now. The new set first; the old ones in a step of their own, when that one has been seen."""
    size = new_size(limits, new, old)
    return {new.name: size} if size != new.size else _shrunk(limits, new, old)


def new_size(limits: Limits, new: Share, old: Iterable[Share]) -> int:
    if new.size >= limits.wanted:
        return limits.wanted
    # Pods that the old ones still have count, also where they are to go: there are never more than allowed.
    room = limits.most - new.occupied - sum(one.occupied for one in old)
    return new.size + max(0, min(room, limits.wanted - new.size))


def _shrunk(limits: Limits, new: Share, old: Sequence[Share]) -> Sizes:
    """Of the old ones: what is not available is missed by nobody, and goes first; then as many as the others make up for."""
    ordered = sorted((one for one in old if one.size > 0), key=lambda one: (one.created, one.name))
    not_yet = new.size - new.lasting
    may_go = sum(one.size for one in ordered) + new.size - limits.fewest - not_yet
    if may_go <= 0:
        return {}
    sizes: Sizes = {one.name: one.size for one in ordered}
    unhealthy = 0
    for one in ordered:
        goes = min(may_go - unhealthy, one.size - one.lasting)
        sizes[one.name] -= goes
        unhealthy += goes
    spare = new.lasting + sum(min(one.lasting, sizes[one.name]) for one in ordered) - limits.fewest
    for one in ordered:
        goes = max(0, min(spare, sizes[one.name]))
        sizes[one.name] -= goes
        spare -= goes
    return {one.name: sizes[one.name] for one in ordered if sizes[one.name] != one.size}
