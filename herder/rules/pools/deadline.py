"""Until when updated machines of a pool have to be available: those that are not halt the rollout."""

from __future__ import annotations

from collections.abc import Iterable

from herder.api import defaults
from herder.api.kinds import VirtualMachinePool
from herder.rules.pools.availability import is_available, min_ready_seconds
from herder.rules.pools.member import Member


def stuck(pool: VirtualMachinePool, revision: str, members: Iterable[Member], now: float) -> tuple[Member | None, float | None]:
    """The first updated machine that is not available in time, or how long until the next one would be."""
    deadline = float(pool.spec.progress_deadline_seconds or defaults.PROGRESS_DEADLINE_SECONDS)
    min_ready = min_ready_seconds(pool)
    soonest: float | None = None
    for member in members:
        if not _awaited(member, revision) or is_available(member, min_ready, now):
            continue
        left = _unavailable_since(member, revision, min_ready, now) + deadline - now
        if left <= 0:
            return member, None
        soonest = left if soonest is None else min(soonest, left)
    return None, soonest


def _unavailable_since(member: Member, revision: str, min_ready: float, now: float) -> float:
    """When it got the revision; or when it was last available with it, as of one whose node was restarted. Who crashes by itself is
    available for a moment each time, and gets no more time by that."""
    begun, last = max(member.updated, member.created), member.last_ready
    if last is None or last.revision != revision or member.crashed:
        return begun
    until = min(last.until, now)
    return max(begun, until) if until - last.since >= min_ready else begun


def _awaited(member: Member, revision: str) -> bool:
    """It has the revision and has not proven itself on it yet. One that has, and fails later, tells nothing about the template."""
    return member.revision == revision and not member.off and member.ready_revision != revision


def works_after_all(pool: VirtualMachinePool, revision: str, members: Iterable[Member], now: float) -> bool:
    """Of a revision that failed: its machines took long, and all of them are available by now. That they are gone proves
    nothing."""
    having = [member for member in members if member.revision == revision and not member.off]
    return bool(having) and all(is_available(member, min_ready_seconds(pool), now) for member in having)
