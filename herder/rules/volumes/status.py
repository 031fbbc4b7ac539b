"""The status of a DataVolume."""

from __future__ import annotations

import msgspec

from herder.api import reasons
from herder.api.kinds import DataVolume
from herder.api.kinds.data_volume import DataVolumePhase
from herder.rules.plans import Document, condition, find, since, without_nothing

RUNNING = "Running"


class Shown(msgspec.Struct, frozen=True):
    """What is to be told."""

    phase: DataVolumePhase
    reason: str = ""
    message: str = ""
    bound: bool = False
    progress: str = ""
    running: bool = False
    # As it counts from now on; None leaves it.
    restarts: int | None = None
    # An attempt has failed just now.
    failed: bool = False


def restarts(volume: DataVolume) -> int:
    return (volume.status.restart_count if volume.status else None) or 0


def failed_at(volume: DataVolume) -> float | None:
    """When the last attempt failed: since then nothing runs."""
    found = find(volume.status.conditions if volume.status else None, RUNNING)
    if found is None or found.status != "False" or found.last_transition_time is None:
        return None
    return found.last_transition_time.timestamp()


def status_of(volume: DataVolume, shown: Shown, now: float) -> Document:
    old = volume.status
    known = [one for one in (old.conditions if old else None) or () if not (shown.failed and one.type == RUNNING)]
    ready = shown.phase == "Succeeded"
    conditions = [
        condition(reasons.BOUND, shown.bound, reasons.BOUND if shown.bound else shown.reason, "" if shown.bound else shown.message),
        condition(RUNNING, shown.running, shown.reason, shown.message),
        condition(reasons.READY, ready, shown.reason, shown.message),
    ]
    return without_nothing(
        {
            "observedGeneration": volume.metadata.generation,
            "phase": shown.phase,
            "progress": shown.progress or "N/A",
            "reason": shown.reason or None,
            "message": shown.message or None,
            "claimName": volume.name if shown.bound else None,
            "restartCount": restarts(volume) if shown.restarts is None else shown.restarts,
            "conditions": since(conditions, known, now),
        }
    )
