"""How a changed template reaches the machines of a pool (seed 003: Unmanaged, Opportunistic, Proactive).

Proactive: a ready machine is never taken down while maxUnavailable are unavailable already, for whatever reason. To act on one
that is not ready costs nothing and comes first, so that a mended template always gets through. When updated machines do not become
available in time the rollout halts by itself, or goes back to the last good revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from herder.api import defaults
from herder.api.int_or_percent import percent_of, scaled_value
from herder.api.kinds import VirtualMachinePool
from herder.api.kinds.pool import ProactiveUpdate
from herder.rules.pools import deadline
from herder.rules.pools.availability import Availability, is_available, max_unavailable, min_ready_seconds
from herder.rules.pools.member import Member, RunField
from herder.rules.pools.revisions import Revision
from herder.rules.pools.selection import Inputs, ordered
from herder.rules.pools.template import in_words_of, is_off, run_field, same_run, volume_changes

# Nobody is restarted for a template that people take back at once.
SETTLES_IN = 1.0
# A resumed guest runs as soon as its pod is placed.
RESUMES_WITHIN = 60.0
Strategy = Literal["Unmanaged", "Opportunistic", "Proactive"]
State = Literal["Rolling", "Paused", "Halted", "RolledBack", "Limited"]
# What an update does to the machine: nothing that its guest notices, a restart, or its end.
Effect = Literal["InPlace", "Restart", "Stop"]


class Course(msgspec.Struct, frozen=True):
    """Where a rollout stands, and where machines go meanwhile."""

    state: State
    # What machines are brought to; the last good revision while a failed one is rolled back.
    target: Revision
    # What new, healed and returning machines get, and how many of them may have the target (None: all).
    last_good: Revision
    room: int | None
    # The updated machine that did not become available in time.
    stuck: Member | None = None
    next_look: float | None = None

    def for_new(self, nth: int) -> Revision:
        """The revision of the nth machine that gets one in this plan, from 0."""
        if self.state in ("Halted", "Paused"):
            return self.last_good
        return self.target if self.room is None or nth < self.room else self.last_good


class Step(msgspec.Struct, frozen=True):
    """One machine that gets a revision now."""

    member: Member
    revision: Revision
    effect: Effect
    # In place of what the template says about when it runs.
    run: RunField | None = None
    # Names in the template of volumes that are wiped and made again.
    reprovision: tuple[str, ...] = ()
    # uid of the instance that is to be replaced; of the one that has all of the revision that takes a restart already.
    restart: str = ""
    holds_for: str = ""

    @property
    def is_fresh(self) -> bool:
        """Who has the revision already, and only needs its restart, is counted already."""
        return self.member.revision != self.revision.name


def strategy_of(pool: VirtualMachinePool) -> Strategy:
    chosen = pool.spec.update_strategy
    if chosen is not None and chosen.unmanaged is not None:
        return "Unmanaged"
    return "Opportunistic" if chosen is not None and chosen.opportunistic is not None else "Proactive"


def proactive(pool: VirtualMachinePool) -> ProactiveUpdate:
    chosen = pool.spec.update_strategy
    return (chosen.proactive if chosen is not None else None) or ProactiveUpdate()


def is_updated(member: Member, revision: str) -> bool:
    """By the label of its instance; who has none and is kept off, by its own."""
    if member.revision != revision:
        return False
    return member.instance_revision == revision if member.instance_uid else member.off


def was_complete(pool: VirtualMachinePool, revision: str, members: Iterable[Member]) -> bool:
    """Whether the rollout of the revision is over. Who fails afterwards fails for another reason; who has another revision, because
    it was attached, still has to get it. To go back to the last good template is a rollout like any other."""
    status = pool.status
    over = status is not None and status.current_revision == status.update_revision == revision and status.rollout is None
    return over and all(member.revision == revision for member in members)


def course(
    pool: VirtualMachinePool, wanted: Revision, known: Mapping[str, Revision], members: Sequence[Member], now: float
) -> Course:
    good = _last_good(pool, wanted, known, members)
    if strategy_of(pool) != "Proactive":
        return Course("Rolling", wanted, wanted, None)
    settings = proactive(pool)
    failed = pool.status is not None and pool.status.failed_revision == wanted.name
    rolls_back = (settings.on_failure or defaults.ON_FAILURE) == "Rollback" and good.name != wanted.name
    if failed and rolls_back:
        return Course("RolledBack", good, good, None)
    goes_on = not was_complete(pool, wanted.name, members)
    stuck, look = deadline.stuck(pool, wanted.name, members, now) if goes_on else (None, None)
    if stuck is not None or (failed and not deadline.works_after_all(pool, wanted.name, members, now)):
        return Course("RolledBack" if rolls_back else "Halted", good if rolls_back else wanted, good, None, stuck)
    limit = _limit(pool, settings)
    room = None if limit is None else max(0, limit - sum(member.revision == wanted.name for member in members))
    if settings.paused:
        # Whom a person names is updated meanwhile, and no more of them than may have it.
        return Course("Paused", wanted, good, room, next_look=look)
    return Course("Limited" if room == 0 and goes_on else "Rolling", wanted, good, room, next_look=look)


def unsettled(template_since: float | None, now: float) -> float:
    """Seconds until the template has stood long enough to restart machines for it. A clock that jumped back does not make it
    longer."""
    return 0.0 if template_since is None else min(SETTLES_IN, template_since + SETTLES_IN - now)


def _last_good(pool: VirtualMachinePool, wanted: Revision, known: Mapping[str, Revision], members: Iterable[Member]) -> Revision:
    """The one that was last rolled out in full; else the one on which most machines have been ready."""
    current = known.get((pool.status.current_revision if pool.status else None) or "")
    if current is not None:
        return current
    votes: dict[str, int] = {}
    for member in members:
        if member.ready_revision in known:
            votes[member.ready_revision] = votes.get(member.ready_revision, 0) + 1
    best = max(votes, key=lambda name: (votes[name], known[name].number), default=None)
    return known[best] if best is not None else wanted


def _limit(pool: VirtualMachinePool, settings: ProactiveUpdate) -> int | None:
    if settings.limit is None:
        return None
    try:
        share = scaled_value(settings.limit, pool.spec.replicas, round_up=False)
    except ValueError:
        return None
    # A few percent of a small pool are one machine, not none.
    return max(1, share) if percent_of(settings.limit) else share


class Limits(msgspec.Struct, frozen=True):
    """What decides who is next, and how many at once."""

    availability: Availability
    inputs: Inputs
    burst: int
    now: float


def steps(
    pool: VirtualMachinePool, course: Course, known: Mapping[str, Revision], members: Sequence[Member], limits: Limits
) -> tuple[Step, ...]:
    """What is updated now. `members` are those that stay and whose last update was not refused."""
    if course.state == "Halted":
        return ()
    if strategy_of(pool) == "Proactive" and not proactive(pool).paused:
        return _proactive(pool, course, known, members, limits)
    # Whom a person names is updated all the same: that is what people are left to do by themselves.
    asked = [member for member in members if is_asked(member, course.target)]
    taken = _proactive(pool, course, known, asked, limits)
    if strategy_of(pool) != "Opportunistic":
        return taken
    left = limits.burst - sum(not step.member.in_flight for step in taken)
    restarted = {step.member.uid for step in taken}
    outdated = [
        member
        for member in members
        if member.revision != course.target.name
        and member.uid not in restarted
        and not keeps_its_memory(member, course.target, known, limits.now)
    ]
    return (*taken, *_within_burst([_opportunistic(member, course.target, known) for member in outdated], max(0, left)))


def keeps_its_memory(member: Member, target: Revision, known: Mapping[str, Revision], now: float) -> bool:
    """It is suspended, or about to go on from memory: with another template it could not. Its turn comes once it runs. Who finds no
    place for long is like any other that does not start."""
    late = member.instance_uid and now - member.instance_created > RESUMES_WITHIN
    if not (member.has_memory or member.being_saved or (member.resuming and not late)):
        return False
    has = known.get(member.revision)
    return has is None or has.instance_key != target.instance_key


def is_asked(member: Member, target: Revision) -> bool:
    """Whether somebody asked for this revision of it, before its turn."""
    return member.update_requested == target.name


def _proactive(
    pool: VirtualMachinePool, course: Course, known: Mapping[str, Revision], members: Sequence[Member], limits: Limits
) -> tuple[Step, ...]:
    free = [member for member in members if not keeps_its_memory(member, course.target, known, limits.now)]
    pending = [step for member in free if (step := _step(pool, member, course.target, known)) is not None]
    in_place = _within_burst([step for step in pending if step.effect == "InPlace"], limits.burst)
    left = limits.burst - sum(not step.member.in_flight for step in in_place)
    taking = _within_budget(pool, [step for step in pending if step.effect != "InPlace"], limits, left)
    chosen = [*in_place, *taking]
    if course.room is None:
        return tuple(chosen)
    fresh = sorted((step for step in chosen if step.is_fresh), key=lambda step: not is_asked(step.member, course.target))
    allowed = {step.member.uid for step in fresh[: course.room]}
    return tuple(step for step in chosen if not step.is_fresh or step.member.uid in allowed)


def _within_burst(steps: Sequence[Step], burst: int) -> list[Step]:
    """What is on its way already counts already, and is helped even where nothing else may be begun."""
    begun = {step.member.uid for step in [step for step in steps if not step.member.in_flight][:burst]}
    return [step for step in steps if step.member.in_flight or step.member.uid in begun]


def _within_budget(pool: VirtualMachinePool, pending: Sequence[Step], limits: Limits, burst: int) -> list[Step]:
    by_name = {step.member.name: step for step in pending if not step.member.paused and not step.member.migrating}
    order = ordered((step.member for step in by_name.values()), proactive(pool).selection_policy, limits.inputs)
    free, min_ready = max_unavailable(pool) - limits.availability.unavailable, min_ready_seconds(pool)
    taken: list[Step] = []
    for member in sorted(order, key=lambda one: (one.ready, not is_asked(one, by_name[one.name].revision))):
        if not member.in_flight and burst <= 0:
            continue
        if member.ready:
            # One that is ready and not for long enough is counted as unavailable already, and must not be the one too many either.
            price = 1 if is_available(member, min_ready, limits.now) else 0
            if free - price < 0:
                continue
            free -= price
        burst -= 0 if member.in_flight else 1
        taken.append(by_name[member.name])
    return taken


def _opportunistic(member: Member, target: Revision, known: Mapping[str, Revision]) -> Step:
    """Nothing is stopped, and takes effect at the next start."""
    run = _run(member, target, known)
    run = member.run if is_off(run) and not member.off else run
    return Step(member, target, "InPlace", run, holds_for=_holds_for(member, target, known))


def _step(pool: VirtualMachinePool, member: Member, target: Revision, known: Mapping[str, Revision]) -> Step | None:
    """None for who is up to date, or will be without our doing."""
    has = known.get(member.instance_revision)
    runs = bool(member.instance_uid)
    # An instance of an unknown revision may be anything.
    outdated_instance = runs and not member.restarting and (has is None or has.instance_key != target.instance_key)
    if member.revision == target.name:
        # Written before, and its instance is still another one: it came between our look and our request, or nobody asked.
        if not outdated_instance or member.off:
            return _not_yet_said(pool, member, target, known)
        return Step(member, target, "Restart", member.run, _still_wiped(pool, member), member.instance_uid)
    run = _run(member, target, known)
    wiped = reprovisioned(pool, member, target, known)
    if is_off(run) and not member.off:
        return Step(member, target, "Stop", run, wiped)
    if not member.off and (outdated_instance or (wiped and runs)):
        return Step(member, target, "Restart", run, wiped, member.instance_uid)
    return Step(member, target, "InPlace", run, wiped, _asked_before(member, target, known), _holds_for(member, target, known))


def _holds_for(member: Member, target: Revision, known: Mapping[str, Revision]) -> str:
    """The instance that runs what the revision says, but for what needs no restart: it is of that revision, also where a change by
    hand waits for a restart of its own."""
    has = known.get(member.instance_revision)
    return member.instance_uid if has is not None and has.instance_key == target.instance_key and not member.restarting else ""


def _not_yet_said(pool: VirtualMachinePool, member: Member, target: Revision, known: Mapping[str, Revision]) -> Step | None:
    """Its instance has the revision as it is, and nobody has said so of this one yet."""
    holds_for = _holds_for(member, target, known)
    if not holds_for or member.off or member.instance_revision == target.name or member.updated_in_place == holds_for:
        return None
    return Step(member, target, "InPlace", member.run, _still_wiped(pool, member), member.restart_request, holds_for)


def _asked_before(member: Member, target: Revision, known: Mapping[str, Revision]) -> str:
    """A request of ours that nobody has acted upon yet, or not to the end, stays; unless what runs is what is wanted again."""
    has = known.get(member.instance_revision)
    fits = has is not None and has.instance_key == target.instance_key
    return "" if member.restarting and fits and not member.ending else member.restart_request


def _run(member: Member, target: Revision, known: Mapping[str, Revision]) -> RunField | None:
    """What the template says only where that has changed: a machine that somebody started or stopped by hand stays so."""
    before = known.get(member.revision)
    wanted = run_field(target.template)
    if before is None or wanted is None or same_run(run_field(before.template), wanted):
        return member.run or wanted
    return in_words_of(member.run, wanted)


def reprovisioned(pool: VirtualMachinePool, member: Member, target: Revision, known: Mapping[str, Revision]) -> tuple[str, ...]:
    """What differs now, and what was asked for before and may not have been done yet: whoever does it wipes only what differs."""
    before = known.get(member.revision)
    asked = _still_wiped(pool, member)
    if not reprovisions(pool) or before is None:
        return asked
    return tuple(dict.fromkeys((*asked, *volume_changes(before.template, target.template))))


def _still_wiped(pool: VirtualMachinePool, member: Member) -> tuple[str, ...]:
    return member.reprovision if reprovisions(pool) else ()


def reprovisions(pool: VirtualMachinePool) -> bool:
    return (proactive(pool).volumes or defaults.CHANGED_VOLUMES) == "Reprovision"
