"""When a machine that does not start is deleted with its storage and made again (seed 003, "Autohealing").

Healing never punishes a template: a machine that was ready on an earlier revision and fails on a newer one is left as it is. How
often and when each was healed is kept in the pool's status, and written before anything is deleted.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import msgspec

from herder.api import defaults
from herder.api.backoff import doubled
from herder.api.duration import parse_seconds
from herder.api.kinds import VirtualMachinePool
from herder.api.kinds.pool import Autohealing
from herder.api.kinds.pool import Healing as HealingRecord
from herder.rules.plans import Document, moment, text_of
from herder.rules.pools.availability import max_unavailable
from herder.rules.pools.member import Member
from herder.rules.pools.selection.inputs import NodeState
from herder.rules.pools.standby import wanted_count

FIRST_WAIT = 10.0
LONGEST_WAIT = 300.0
# Who is ready for this long has recovered: its next failure is a first one.
FORGOTTEN_AFTER = 600.0
# Bounds the status: with so many in treatment the next one waits.
MOST_RECORDS = 1000


class Healing(msgspec.Struct, frozen=True):
    healed: tuple[Member, ...] = ()
    records: tuple[Document, ...] = ()
    next_look: float | None = None


def heal(
    pool: VirtualMachinePool,
    members: Sequence[Member],
    ready_before: Mapping[str, str],
    nodes: Mapping[str, NodeState],
    now: float,
    burst: int = defaults.POOL_BURST,
    left_alone: Container[str] = (),
) -> Healing:
    """`ready_before`: of machines whose volumes the pool keeps, what they were ready on before. `burst`: how many more may be
    on their way at once. `left_alone`: uids of machines that are not healed now, whatever they have."""
    known = {one.name: one for one in (pool.status.healing if pool.status else None) or ()}
    by_name = {member.name: member for member in members}
    sane = {name: _sane(record, now) for name, record in known.items()}
    records = {name: record for name, record in sane.items() if not _is_over(record, by_name.get(name), now)}
    waits = [until - now for name, record in records.items() if (until := _over_at(record, by_name.get(name))) is not None]
    settings = pool.spec.autohealing
    healed: list[Member] = []
    if settings is not None and not pool.spec.paused:
        slots = min(burst, max_unavailable(pool) - _treated(pool, records, by_name, settings))
        for member in members:
            if member.uid in left_alone:
                continue
            record = None if _is_unfinished(known.get(member.name), member, now) else records.get(member.name)
            due = _due(member, settings, ready_before.get(member.name, ""), nodes.get(member.node), record, now)
            if due is None:
                continue
            if due > now:
                waits.append(due - now)
            elif len(healed) < slots and (member.name in records or len(records) < MOST_RECORDS):
                healed.append(member)
                if not _is_unfinished(known.get(member.name), member, now):
                    records[member.name] = _one_more(member.name, records.get(member.name), now)
    return Healing(tuple(healed), tuple(_document(one) for one in records.values()), min(waits, default=None))


def _due(
    member: Member,
    settings: Autohealing,
    ready_before: str,
    node: NodeState | None,
    record: HealingRecord | None,
    now: float,
) -> float | None:
    """When it is to be healed; None for who is not."""
    if not is_sick(member, settings) or member.deleting or member.ready or member.number is None:
        return None
    if member.off and not member.volume_failed:
        # Somebody has switched it off: it fails no more.
        return None
    if node is not None and not node.answers:
        return None
    if is_spared(member, ready_before):
        return None
    since = member.failing_since or member.created
    due = since + _minimum(settings)
    if record is not None and record.retry_after_time is not None:
        due = max(due, record.retry_after_time.timestamp())
    return due


def _is_unfinished(record: HealingRecord | None, member: Member, now: float) -> bool:
    """It is written down that this very machine is healed, and it is there: somebody was faster with a word about it, or whoever
    wrote it down is gone. That healing is carried out, and not counted once more."""
    if record is None or record.last_healed_time is None:
        return False
    healed = record.last_healed_time.timestamp()
    return member.created < healed <= now and member.failing_since <= healed


def is_sick(member: Member, settings: Autohealing) -> bool:
    """A volume that failed for good counts as the threshold reached."""
    threshold = settings.startup_failure_threshold or defaults.STARTUP_FAILURE_THRESHOLD
    return member.volume_failed or member.failures >= threshold


def is_spared(member: Member, ready_before: str) -> bool:
    """It was ready, and not the disk is known to be at fault: it fails on another revision than that, or has failed since before it
    was brought back to that one, or cannot get a volume that it once had."""
    before = member.ready_revision or ready_before
    return bool(before) and (before != member.revision or member.volume_failed or member.failing_since < member.updated)


def _treated(
    pool: VirtualMachinePool, records: Mapping[str, HealingRecord], members: Mapping[str, Member], settings: Autohealing
) -> int:
    """How many are in treatment: gone, and to be made again, or made again and not yet known to be well or sick. Who is gone and
    has no place any more is waited for by nobody."""
    missing = pool.spec.replicas + wanted_count(pool) - sum(not member.deleting for member in members.values())
    gone = sum(name not in members or members[name].deleting for name in records)
    back = [members[name] for name in records if name in members and not members[name].deleting]
    return min(gone, max(0, missing)) + sum(not one.ready and not one.off and not is_sick(one, settings) for one in back)


def _is_over(record: HealingRecord, member: Member | None, now: float) -> bool:
    until = _over_at(record, member)
    return until is not None and until <= now


def _over_at(record: HealingRecord, member: Member | None) -> float | None:
    """When the record goes; None while it is not known: the machine is there, and not ready."""
    if member is not None:
        return member.ready_since + FORGOTTEN_AFTER if member.ready else None
    retry = record.retry_after_time
    return (retry.timestamp() if retry is not None else 0.0) + FORGOTTEN_AFTER


def _sane(record: HealingRecord, now: float) -> HealingRecord:
    """A clock that jumped back must not keep a machine from being healed for longer than the longest wait."""
    retry = record.retry_after_time
    if retry is None or retry.timestamp() - now <= LONGEST_WAIT:
        return record
    wait = doubled(FIRST_WAIT, LONGEST_WAIT, (record.attempts or 1) - 1)
    return msgspec.structs.replace(record, last_healed_time=moment(now), retry_after_time=moment(now + wait))


def _one_more(name: str, record: HealingRecord | None, now: float) -> HealingRecord:
    attempts = ((record.attempts if record is not None else None) or 0) + 1
    wait = doubled(FIRST_WAIT, LONGEST_WAIT, attempts - 1)
    return HealingRecord(name=name, attempts=attempts, last_healed_time=moment(now), retry_after_time=moment(now + wait))


def _document(record: HealingRecord) -> Document:
    return {
        "name": record.name,
        "attempts": record.attempts or 0,
        **({"lastHealedTime": text_of(record.last_healed_time)} if record.last_healed_time else {}),
        **({"retryAfterTime": text_of(record.retry_after_time)} if record.retry_after_time else {}),
    }


def _minimum(settings: Autohealing) -> float:
    try:
        return parse_seconds(settings.min_failing_duration or defaults.MIN_FAILING_DURATION)
    except ValueError:
        return 0.0
