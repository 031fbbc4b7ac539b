"""A migration in one line, for people who watch it."""

from __future__ import annotations

import msgspec

from herder.api import reasons
from herder.api.kinds import VirtualMachineInstanceMigration
from herder.api.kinds.migration_state import MigrationProgress
from herder.rules.migration.phases import phase_of, source_of
from herder.rules.plans import failing
from herder.rules.progress import POST_COPY

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def furthest(migration: VirtualMachineInstanceMigration, before: MigrationProgress | None) -> MigrationProgress | None:
    """The progress to be shown. `before` is what was shown last: whatever is reported, nothing of it runs backwards."""
    now = (migration.status.progress if migration.status else None) or before
    if now is None or before is None:
        return now
    return msgspec.structs.replace(
        now,
        percent=max(now.percent or 0, before.percent or 0),
        transferred_bytes=max(now.transferred_bytes or 0, before.transferred_bytes or 0),
        mode=POST_COPY if before.mode == POST_COPY else now.mode or before.mode,
    )


def line(migration: VirtualMachineInstanceMigration, progress: MigrationProgress | None) -> str:
    """`progress` is the furthest that is known."""
    said = standing(migration)
    return f"{said}: {_numbers(progress)}" if phase_of(migration) == "Running" and progress is not None else said


def standing(migration: VirtualMachineInstanceMigration) -> str:
    """Its phase, where it goes, and what keeps it, as far as somebody said so."""
    status = migration.status
    phase = phase_of(migration)
    fails = failing(status.conditions if status else None)
    source = status if status is not None and status.reason else fails
    why = " ".join(part for part in ((source.reason, source.message) if source else ()) if part)
    if phase == "Running" and status is not None and status.reason in reasons.MIGRATION_FAILURES:
        # Why is said once, when it is over.
        why = "it is being called off"
    target = f" to {status.target_node}" if status is not None and status.target_node else ""
    return f"{phase}{target}" + (f": {why}" if why else "")


def waits_for(migration: VirtualMachineInstanceMigration, progress: MigrationProgress | None = None) -> str:
    """What keeps it where it is, or how far it is, for who has seen nothing happen for a while."""
    status = migration.status
    if status is None or status.phase is None:
        return f"no controller has answered to migration {migration.name} yet; `herder up` runs them, and `herder controllers`"
    said = line(migration, progress)
    if ": " in said:
        return said
    target = status.target_node or "the target's node"
    steps = {
        "Pending": "it waits for its turn",
        "Scheduling": "its target waits for a node",
        "Scheduled": f"its target waits to come to {target}",
        "PreparingTarget": f"it waits for {target} to prepare the target",
        "TargetReady": f"it waits for {source_of(migration) or 'its node'} to begin",
        "Running": f"it waits for {source_of(migration) or 'its node'} to say how far the copy is",
    }
    return f"{said}: {steps[status.phase]}" if status.phase in steps else said


def _numbers(progress: MigrationProgress) -> str:
    """What nobody has said is left out: it is not zero."""
    left, rate, time = progress.remaining_bytes, progress.bytes_per_second, progress.estimated_seconds_left
    parts = [
        f"{progress.percent or 0} %",
        f"{size(progress.transferred_bytes or 0)} sent",
        f"{size(left)} left" if left is not None else "",
        f"{size(rate)}/s" if rate is not None else "",
        progress.mode or "",
        f"about {time} s" if time is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def size(count: int) -> str:
    power = min(max(0, (count.bit_length() - 1) // 10), len(_UNITS) - 1)
    value = count / 1024**power
    return f"{value:.0f} {_UNITS[power]}" if power == 0 or value >= 100 else f"{value:.1f} {_UNITS[power]}"
