"""A migration in one line, for people who watch it."""

from __future__ import annotations

from herder.api.kinds import VirtualMachineInstanceMigration
from herder.api.kinds.migration_state import MigrationProgress
from herder.rules.migration.phases import phase_of

WIDTH = 24
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def line(migration: VirtualMachineInstanceMigration, percent: int = 0) -> str:
    """`percent` is what was shown before: the bar never runs backwards."""
    status = migration.status
    phase = phase_of(migration)
    why = " ".join(part for part in ((status.reason, status.message) if status else ()) if part)
    target = f" to {status.target_node}" if status is not None and status.target_node else ""
    said = f"{phase}{target}" + (f": {why}" if why else "")
    if phase == "Running" and status is not None and status.progress is not None:
        return f"{said} {bar(max(percent, status.progress.percent or 0))} {_numbers(status.progress)}"
    return said


def bar(percent: int) -> str:
    full = WIDTH * percent // 100
    return f"[{'#' * full}{'.' * (WIDTH - full)}] {percent:3d} %"


def _numbers(progress: MigrationProgress) -> str:
    left = progress.estimated_seconds_left
    parts = [
        f"{size(progress.transferred_bytes or 0)} sent, {size(progress.remaining_bytes or 0)} left",
        f"{size(progress.bytes_per_second or 0)}/s",
        progress.mode or "",
        f"about {left} s" if left is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def size(count: int) -> str:
    power = min(max(0, (count.bit_length() - 1) // 10), len(_UNITS) - 1)
    value = count / 1024**power
    return f"{value:.0f} {_UNITS[power]}" if power == 0 or value >= 100 else f"{value:.1f} {_UNITS[power]}"
