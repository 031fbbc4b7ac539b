"""What a pool shows: counts, revisions and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from herder.api import labels, reasons
from herder.rules.plans import Document, condition, moment, since, text_of, without_nothing
from herder.rules.pools.availability import Availability, is_available, max_unavailable, min_ready_seconds
from herder.rules.pools.healing import Healing, is_sick, is_spared
from herder.rules.pools.member import Member
from herder.rules.pools.preservation import preserved_states, was_ready_on
from herder.rules.pools.revisions import Revision
from herder.rules.pools.rollout import Course, is_updated, proactive, strategy_of, was_complete
from herder.rules.pools.snapshot import PoolSnapshot, Refusal
from herder.rules.pools.standby import Standbys, is_ready, why_offline

MOST_DETACHED = 256
# Of the machines that a sentence could name.
MOST_NAMED = 5


class Standing(msgspec.Struct, frozen=True):
    """What was decided, for who shows it."""

    # Machines of the pool that are not being deleted.
    staying: tuple[Member, ...]
    wanted: Revision
    course: Course
    availability: Availability
    healing: Healing
    surplus: int
    # What was refused to machines that there are, or should be.
    refusals: Mapping[str, Refusal]
    # Who is not taken because its memory cannot be saved, and why.
    unsaved: tuple[tuple[str, str], ...] = ()
    standbys: Standbys = Standbys()


def status_of(snapshot: PoolSnapshot, standing: Standing, now: float) -> Document:
    pool, old = snapshot.pool, snapshot.pool.status
    detached = snapshot.detached[:MOST_DETACHED]
    there = _is_there(snapshot, standing, now)
    before = (old.current_revision if old else None) or None
    complete = there or was_complete(pool, standing.wanted.name, standing.staying)
    return without_nothing(
        {
            "observedGeneration": pool.metadata.generation,
            "replicas": len(standing.staying),
            "readyReplicas": standing.availability.ready,
            "availableReplicas": standing.availability.available,
            "updatedReplicas": sum(is_updated(member, standing.wanted.name) for member in standing.staying),
            "unavailableReplicas": standing.availability.unavailable,
            "surplusReplicas": standing.surplus,
            "standbyReplicas": len(standing.standbys.staying) or None,
            "readyStandbyReplicas": sum(is_ready(member) for member in standing.standbys.staying) or None,
            "preservedStates": len(preserved_states(snapshot)),
            "detachedReplicas": len(snapshot.detached),
            "detached": list(detached) or None,
            "labelSelector": f"{labels.POOL}={pool.name}",
            "currentRevision": standing.wanted.name if there else before,
            "updateRevision": standing.wanted.name,
            "failedRevision": standing.wanted.name if standing.course.state in ("Halted", "RolledBack") else None,
            "collisionCount": (old.collision_count if old else None) or None,
            "rollout": None if complete else _rollout(snapshot, standing, now),
            "healing": [*standing.healing.records] or None,
            "conditions": since(_conditions(snapshot, standing, complete), old.conditions if old else None, now),
        }
    )


def _is_there(snapshot: PoolSnapshot, standing: Standing, now: float) -> bool:
    """Every machine has the revision, and is available with it."""
    pool = snapshot.pool
    min_ready = min_ready_seconds(pool)
    return len(standing.staying) >= pool.spec.replicas and all(
        is_updated(member, standing.wanted.name) and (member.off or is_available(member, min_ready, now))
        for member in standing.staying
    )


def _rollout(snapshot: PoolSnapshot, standing: Standing, now: float) -> Document:
    """Since when the template's revision is rolled out."""
    old = snapshot.pool.status
    known = old.rollout.started_time if old and old.rollout and old.update_revision == standing.wanted.name else None
    return {"startedTime": text_of(known or moment(now))}


def _conditions(snapshot: PoolSnapshot, standing: Standing, complete: bool) -> list[Document]:
    pool = snapshot.pool
    found = [_available(snapshot, standing), _progressing(snapshot, standing, complete)]
    if pool.spec.paused:
        found.append(
            condition(reasons.PAUSED, True, reasons.PAUSED, "spec.paused is true: nothing is created, deleted, rolled or healed")
        )
    failure = _replica_failure(standing)
    if failure is not None:
        found.append(failure)
    strange = [member.name for member in snapshot.members if member.number is None]
    if strange:
        message = f"not named {pool.name}-<n> and never touched: {named(strange)}"
        found.append(condition(reasons.UNEXPECTED_NAMES, True, reasons.UNEXPECTED_NAMES, message))
    spared = _spared(snapshot, standing)
    if spared:
        whose = "its" if len(spared) == 1 else "their"
        message = f"ready on an earlier revision, so {whose} volumes are not wiped: {named(spared)}; mend or revert the template"
        found.append(condition(reasons.HEALING_WITHHELD, True, reasons.READY_ON_EARLIER_REVISION, message))
    unsaved = _unsaved(snapshot, standing)
    if unsaved:
        found.append(condition(reasons.MEMORY_PRESERVED, False, reasons.CANNOT_SAVE_MEMORY, unsaved[:2000]))
    return found


def _unsaved(snapshot: PoolSnapshot, standing: Standing) -> str:
    """Whose memory cannot be saved, of those that should be taken or sleep."""
    said: list[str] = []
    if standing.unsaved:
        said.append(
            f"not taken, because memory cannot be saved: {named((f'{name}: {why}' for name, why in standing.unsaved), '; ')}"
        )
    wanted = snapshot.pool.spec.standby
    if wanted is not None and wanted.replicas and wanted.state == "Online":
        never = why_offline(standing.course.last_good)
        failed = [
            f"{one.name}: {one.save_failure.message}"
            for one in standing.standbys.staying
            if one.standby == "Offline" and one.save_failure is not None
        ]
        why = never or named(failed, "; ")
        said += [f"standby machines that are stopped, because memory cannot be saved: {why}"] if why else []
    return "; ".join(said)


def _available(snapshot: PoolSnapshot, standing: Standing) -> Document:
    most = max_unavailable(snapshot.pool)
    missed = standing.availability.unavailable
    if missed <= most:
        return condition(reasons.AVAILABLE, True, reasons.MINIMUM_REPLICAS_AVAILABLE, "")
    message = f"{missed} unavailable, and at most {most} may be"
    return condition(reasons.AVAILABLE, False, reasons.MINIMUM_REPLICAS_UNAVAILABLE, message)


def _progressing(snapshot: PoolSnapshot, standing: Standing, complete: bool) -> Document:
    course, wanted = standing.course, standing.wanted
    updated = sum(is_updated(member, wanted.name) for member in standing.staying)
    far = f"{updated} of {len(standing.staying)} {'has' if updated == 1 else 'have'} revision {wanted.name}"
    if course.state == "Halted":
        who = course.stuck.name if course.stuck is not None else "a machine"
        # Before the first template that works there is none to go back to.
        advice = "mend the template" if course.last_good.name == wanted.name else "mend or revert the template"
        message = f"{who} did not become available with revision {wanted.name} in time; {far}; {advice}"
        return condition(reasons.PROGRESSING, False, reasons.PROGRESS_DEADLINE_EXCEEDED, message)
    if course.state == "RolledBack":
        message = (
            f"revision {wanted.name} did not become available in time: back to {course.target.name}; change the template to go on"
        )
        return condition(reasons.PROGRESSING, False, reasons.ROLLED_BACK, message)
    if complete:
        return condition(reasons.PROGRESSING, True, reasons.ROLLOUT_COMPLETE, f"all have revision {wanted.name}")
    if course.state == "Paused":
        return condition(reasons.PROGRESSING, False, reasons.ROLLOUT_PAUSED, f"updateStrategy.proactive.paused is true; {far}")
    if course.state == "Limited":
        limit = proactive(snapshot.pool).limit
        return condition(reasons.PROGRESSING, True, reasons.ROLLOUT_LIMITED, f"updateStrategy.proactive.limit is {limit}; {far}")
    if strategy_of(snapshot.pool) != "Proactive":
        return condition(
            reasons.PROGRESSING, True, reasons.WAITING_FOR_RESTARTS, f"updateStrategy {strategy_of(snapshot.pool)}; {far}"
        )
    held = _held_up(standing)
    return condition(reasons.PROGRESSING, True, reasons.ROLLING_OUT, f"{far}{held}")


def _held_up(standing: Standing) -> str:
    """Machines that a rollout leaves alone for now."""
    others = [one for one in standing.staying if not is_updated(one, standing.wanted.name)]
    paused = [one.name for one in others if one.paused]
    migrating = [one.name for one in others if one.migrating and not one.paused]
    suspended = [one.name for one in others if one.has_memory or one.being_saved]
    said = f"; paused, and left so: {named(paused)}" if paused else ""
    said += f"; suspended, and left so: {named(suspended)}" if suspended else ""
    return said + (f"; waiting for migrations of {named(migrating)}" if migrating else "")


def _replica_failure(standing: Standing) -> Document | None:
    refused = [f"{name}: {refusal.message}" for name, refusal in sorted(standing.refusals.items())]
    if refused:
        there = {member.name for member in standing.staying}
        reason = reasons.FAILED_UPDATE if there.issuperset(standing.refusals) else reasons.FAILED_CREATE
        return condition(reasons.REPLICA_FAILURE, True, reason, named(refused, "; ")[:2000])
    foreign = [f"{member.name}: {member.volume_not_owned}" for member in standing.staying if member.volume_not_owned]
    if foreign:
        return condition(reasons.REPLICA_FAILURE, True, reasons.VOLUME_NOT_OWNED, named(foreign, "; ")[:2000])
    return None


def _spared(snapshot: PoolSnapshot, standing: Standing) -> list[str]:
    settings = snapshot.pool.spec.autohealing
    if settings is None:
        return []
    before = was_ready_on(snapshot)
    sick = [member for member in standing.staying if is_sick(member, settings) and not member.ready]
    return [member.name for member in sick if is_spared(member, before.get(member.name, ""))]


def counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def named(names: Sequence[str] | Iterable[str], between: str = ", ") -> str:
    listed = list(names)
    more = f"{between}and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return between.join(listed[:MOST_NAMED]) + more
