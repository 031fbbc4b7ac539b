"""Which machines of a pool are available, and how many may be missed at once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from herder.api import defaults
from herder.api.int_or_percent import scaled_value
from herder.api.kinds import VirtualMachinePool
from herder.rules.pools.member import Member


class Availability(msgspec.Struct, frozen=True):
    ready: int
    available: int
    # Not Ready, or not for long enough, or not there at all. Who is off is not missed; who is being stopped is, until then.
    unavailable: int
    # When the next one becomes available by time alone.
    next_look: float | None = None


def is_available(member: Member, min_ready: float, now: float) -> bool:
    return member.ready and (min_ready <= 0 or member.ready_since + min_ready <= now)


def count(members: Iterable[Member], replicas: int, min_ready: float, now: float) -> Availability:
    """Of those that stay."""
    ready = available = unavailable = present = 0
    soonest: float | None = None
    for member in members:
        present += 1
        if is_available(member, min_ready, now):
            ready, available = ready + 1, available + 1
            continue
        if member.ready:
            ready += 1
            left = member.ready_since + min_ready - now
            soonest = left if soonest is None else min(soonest, left)
        if not member.halted:
            unavailable += 1
    return Availability(ready, available, unavailable + max(0, replicas - present), soonest)


def max_unavailable(pool: VirtualMachinePool) -> int:
    """A percentage is of replicas, rounded down; at least 1, else nothing could ever be updated."""
    wanted = pool.spec.max_unavailable
    try:
        return max(1, scaled_value(defaults.MAX_UNAVAILABLE if wanted is None else wanted, pool.spec.replicas, round_up=False))
    except ValueError:
        return 1


def min_ready_seconds(pool: VirtualMachinePool) -> float:
    return float(pool.spec.min_ready_seconds or defaults.MIN_READY_SECONDS)
