"""Machines that sleep beside the replicas until a scale-out takes them: provisioned, and stopped (Offline) or suspended (Online).

They follow the last good revision, and are rolled while they sleep: one that is stopped gets another spec, one that is suspended
is booted once with it and saved again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from herder.api import labels
from herder.api.kinds import VirtualMachinePool
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.api.kinds.pool import StandbyState
from herder.api.reading import part
from herder.rules.plans import Document, moment, text_of
from herder.rules.pools.availability import max_unavailable
from herder.rules.pools.member import Member, RunField
from herder.rules.pools.revisions import Revision
from herder.rules.pools.rollout import Course, reprovisioned, strategy_of
from herder.rules.pools.save_failure import one_more, written
from herder.rules.pools.template import is_off, machine_document, run_field
from herder.rules.suspension.savable import why_never

OFFLINE, ONLINE = "Offline", "Online"
# So long those that are asked for come first: to make others in the background would only slow them down.
YIELDS_FOR = 30.0


class Write(msgspec.Struct, frozen=True):
    """What is applied to one of them."""

    member: Member
    revision: Revision
    document: Document
    run: RunField | None = None
    wipes: bool = False
    # It is booted for it, and is no help to a scale-out meanwhile.
    wakes: bool = False


class Standbys(msgspec.Struct, frozen=True):
    """Those that there are, but for those that are being deleted."""

    # That a scale-out takes, in this order.
    activate: tuple[Member, ...] = ()
    # More than wanted.
    surplus: tuple[Member, ...] = ()
    # The others.
    staying: tuple[Member, ...] = ()
    # How many are to be made.
    short: int = 0


def wanted_count(pool: VirtualMachinePool) -> int:
    return (pool.spec.standby.replicas if pool.spec.standby is not None else None) or 0


def why_offline(target: Revision) -> str:
    """Why machines that shall sleep Online can only be stopped; empty where they can be suspended."""
    try:
        spec = msgspec.convert(part(target.template, "spec", "template", "spec"), VirtualMachineInstanceSpec)
    except msgspec.MsgspecError:
        return ""
    return why_never(spec)


def state_of(pool: VirtualMachinePool, target: Revision) -> StandbyState:
    """How they sleep. What its template keeps off has no memory."""
    wanted = (pool.spec.standby.state if pool.spec.standby is not None else None) or OFFLINE
    return wanted if wanted == OFFLINE or not (is_off(run_field(target.template)) or why_offline(target)) else OFFLINE


def shared_out(pool: VirtualMachinePool, sleeping: Sequence[Member], needed: int, burst: int, *, refill: bool = True) -> Standbys:
    """`needed`: how many machines the replicas are short of. Who sleeps goes before who is still on its way there, and the lower
    number first; of those that are too many the highest goes, and who does not sleep yet."""
    order = sorted(sleeping, key=lambda one: (not is_ready(one), one.number or 0))
    activate, rest = order[: min(needed, burst)], order[min(needed, burst) :]
    # Those that are taken as soon as the burst allows are nobody's surplus, nor do they count as what is kept.
    later = min(len(rest), needed - len(activate))
    count = wanted_count(pool)
    surplus = tuple(reversed(rest[later + count :]))[: burst - len(activate)]
    staying = sorted(rest[: later + count], key=lambda one: one.number or 0)
    # Whoever is asked for comes first, and others are made in the background once it runs.
    short = max(0, count - (len(rest) - later)) if refill and not activate else 0
    return Standbys(tuple(activate), surplus, tuple(staying), short)


def is_ready(member: Member) -> bool:
    """It sleeps as it should, and can be taken at once."""
    return member.halted and (member.standby != ONLINE or member.has_memory)


def yields_to(replicas: Sequence[Member], now: float) -> float:
    """Seconds until standbys are made although replicas are still on their way; 0 where none is that was made or changed lately."""
    begun = [max(one.updated, one.created) for one in replicas if one.in_flight and not one.deleting]
    return max((since + YIELDS_FOR - now for since in begun if since <= now < since + YIELDS_FOR), default=0.0)


# What is written to them.


def created(pool: VirtualMachinePool, revision: Revision, number: int, annotations: Document, *, has_memory: bool) -> Document:
    """One with memory that was kept sleeps on; another one is booted first, if it is to have any."""
    online = has_memory or state_of(pool, revision) == ONLINE
    run = None if online else _off(revision)
    state = ONLINE if online else OFFLINE
    return machine_document(pool, revision, number, run=run, annotations=annotations, standby=state, suspended=has_memory)


def activated(
    pool: VirtualMachinePool, member: Member, course: Course, known: Mapping[str, Revision], nth: int, now: float
) -> Write:
    """Who has a guest, or memory, goes on with the revision that it has, and is rolled afterwards like any other."""
    own = known.get(member.revision)
    revision = own if own is not None and (member.has_memory or member.instance_uid) else course.for_new(nth)
    # From now on it is awaited: how long it slept says nothing about its revision.
    awake = msgspec.structs.replace(member, updated=now)
    return _write(pool, awake, revision, known, now, run=run_field(revision.template))


def steps(
    pool: VirtualMachinePool, staying: Sequence[Member], target: Revision, known: Mapping[str, Revision], burst: int, now: float
) -> tuple[Write, ...]:
    """What is to be written to those that stay. No more are awake at once for a new revision than may be unavailable: a scale-out
    must find somebody."""
    state = state_of(pool, target)
    awake = sum(not is_ready(member) for member in staying)
    found: list[Write] = []
    for member in staying:
        write = _step(pool, member, state, target, known, now)
        if write is None or (not member.in_flight and burst <= 0):
            continue
        if write.wakes and is_ready(member):
            if awake >= max_unavailable(pool):
                continue
            awake += 1
        burst -= 0 if member.in_flight else 1
        found.append(write)
    return tuple(found)


def _step(
    pool: VirtualMachinePool,
    member: Member,
    state: StandbyState,
    target: Revision,
    known: Mapping[str, Revision],
    now: float,
) -> Write | None:
    own = known.get(member.revision)
    fits = own is not None and own.instance_key == target.instance_key
    if strategy_of(pool) == "Unmanaged" and own is not None:
        target, fits = own, True
    if state == OFFLINE or _waits(member, now):
        # Memory that there is costs nobody anything while it fits.
        if fits and (member.standby == OFFLINE or member.has_memory) and member.revision == target.name:
            return None
        return _stopped(pool, member, target, known, now)
    if member.suspension is not None and (problem := member.suspension.problem):
        return _stopped(pool, member, target, known, now, one_more(member.save_failure, problem, now))
    if member.standby != ONLINE or not fits or (member.is_asleep and not member.has_memory):
        return _booted(pool, member, target, known, now)
    if member.suspension is None and member.ready and member.running:
        return _write(pool, member, target, known, now, standby=ONLINE, suspended=True)
    if member.revision != target.name:
        return _write(pool, member, target, known, now, standby=ONLINE, suspended=member.suspension is not None)
    return None


def _waits(member: Member, now: float) -> bool:
    """Its memory could not be saved a while ago: until it is tried again it is stopped."""
    return member.save_failure is not None and member.save_failure.until(now) > now


def next_look(staying: Sequence[Member], now: float) -> float | None:
    waits = [one.save_failure.until(now) - now for one in staying if one.save_failure is not None and _waits(one, now)]
    return min(waits, default=None)


def _stopped(
    pool: VirtualMachinePool, member: Member, target: Revision, known: Mapping[str, Revision], now: float, failure: str = ""
) -> Write:
    marks = {labels.SAVE_FAILED: failure} if failure else {}
    return _write(pool, member, target, known, now, run=_off(target), standby=OFFLINE, marks=marks)


def _booted(pool: VirtualMachinePool, member: Member, target: Revision, known: Mapping[str, Revision], now: float) -> Write:
    """One that runs with another revision is restarted."""
    marks = {labels.RESTART_REQUEST: member.instance_uid} if member.instance_uid else {}
    return _write(pool, member, target, known, now, run=run_field(target.template), standby=ONLINE, marks=marks, wakes=True)


def _write(
    pool: VirtualMachinePool,
    member: Member,
    revision: Revision,
    known: Mapping[str, Revision],
    now: float,
    *,
    run: RunField | None = None,
    standby: str = "",
    suspended: bool = False,
    marks: Document | None = None,
    wakes: bool = False,
) -> Write:
    since = member.updated if member.revision == revision.name and member.updated else now
    failed = {labels.SAVE_FAILED: written(member.save_failure)} if member.save_failure is not None and _waits(member, now) else {}
    annotations: Document = {labels.POOL_UPDATED: text_of(moment(since)), **failed, **(marks or {})}
    wiped = reprovisioned(pool, member, revision, known)
    if wiped:
        annotations[labels.REPROVISION] = ",".join(f"{name}-{member.number}" for name in wiped)
    run = run or run_field(revision.template)
    document = machine_document(
        pool, revision, member.number or 0, run=run, annotations=annotations, standby=standby, suspended=suspended
    )
    return Write(member, revision, document, run, bool(wiped), wakes)


def _off(revision: Revision) -> RunField:
    """In the words of the template."""
    said = run_field(revision.template)
    return RunField("running", False) if said is not None and said.name == "running" else RunField("runStrategy", "Halted")
