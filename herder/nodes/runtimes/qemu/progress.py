"""A migration's settings and numbers: our words in QEMU's, and QEMU's in ours. Pure."""

from __future__ import annotations

from typing import Any

from herder.api.defaults import MAX_DOWNTIME_MS
from herder.api.kinds.migration_state import MigrationMode, MigrationProgress, PolicySettings
from herder.api.quantity import parse_quantity

UNLIMITED = 1 << 40  # bytes a second


def bandwidth(settings: PolicySettings) -> int:
    """0 is without limit."""
    return parse_quantity(settings.bandwidth_per_migration).value() if settings.bandwidth_per_migration else 0


def capabilities(settings: PolicySettings) -> list[dict[str, Any]]:
    """`return-path`: the source says that it is over when the target has said so, and not when its own last byte is sent."""
    wanted = {
        "events": True,
        "return-path": True,
        "auto-converge": bool(settings.allow_auto_converge),
        "postcopy-ram": bool(settings.allow_post_copy),
    }
    return [{"capability": name, "state": on} for name, on in wanted.items()]


def parameters(settings: PolicySettings) -> dict[str, Any]:
    """A downtime of 0 would mean to QEMU that any is good. What is asked for in post-copy is sent at once, whatever the limit."""
    return {
        "max_bandwidth": bandwidth(settings) or UNLIMITED,
        "max_postcopy_bandwidth": bandwidth(settings),
        "downtime_limit": max(1, settings.max_downtime_ms if settings.max_downtime_ms is not None else MAX_DOWNTIME_MS),
    }


def progress_of(answer: dict[str, Any], before: MigrationProgress, paused: bool) -> MigrationProgress:
    """QEMU's numbers in our words. The share that is done never runs backwards. At its end QEMU forgets how it got there."""
    ram: dict[str, Any] = answer.get("ram", {})
    if not ram:
        return before
    total, remaining = int(ram["total"]), int(ram["remaining"])
    completed = answer.get("status") == "completed"
    done = 100 if completed else min(99, 100 - 100 * remaining // total if total else 0)
    speed = int(ram.get("mbps", 0) * 1e6 / 8)
    dirty = int(ram.get("dirty-pages-rate", 0)) * int(ram.get("page-size", 4096))
    mode: MigrationMode = "PostCopy" if str(answer.get("status", "")).startswith("postcopy") else "Paused" if paused else "PreCopy"
    return MigrationProgress(
        mode=before.mode if completed else mode,
        total_bytes=total,
        transferred_bytes=int(ram["transferred"]),
        remaining_bytes=remaining,
        dirty_bytes_per_second=dirty,
        bytes_per_second=speed,
        iteration=int(ram.get("dirty-sync-count", 0)) or None,
        throttle_percent=before.throttle_percent if completed else int(answer.get("cpu-throttle-percentage", 0)),
        percent=max(done, before.percent or 0),
        estimated_seconds_left=remaining // (speed - dirty) if speed > dirty else None,
        downtime_ms=answer.get("downtime", answer.get("expected-downtime")),
    )
