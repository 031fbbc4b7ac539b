"""What is new about the phases of an instance between two looks at it: for the numbers that people draw."""

from __future__ import annotations

import datetime

import msgspec

from herder.api.kinds import VirtualMachineInstance
from herder.api.kinds.instance import PhaseTransition

FINISHED = ("Succeeded", "Failed")


class Transition(msgspec.Struct, frozen=True):
    """A phase that was reached for the first time. In seconds; None where there is nothing to count from."""

    phase: str
    from_creation: float | None
    # The one that was reached before, and how long ago; empty for the first.
    last_phase: str | None = None
    from_last_phase: float | None = None
    # Only of an end that was asked for.
    from_deletion: float | None = None


class Seen(msgspec.Struct, frozen=True):
    transitions: tuple[Transition, ...] = ()
    # It ran for the first time, or ended.
    started: bool = False
    stopped: bool = False


def seen_between(before: VirtualMachineInstance, after: VirtualMachineInstance | None, now: datetime.datetime) -> Seen:
    """`before` is what was known: what was true then was counted then, or by who led before. None is one that is gone."""
    if after is None or after.uid != before.uid:
        return _gone(before, now)
    known, listed = {one.phase for one in _times(before)}, _times(after)
    fresh = tuple(_transition(after, listed, place) for place, one in enumerate(listed) if one.phase not in known)
    return Seen(
        transitions=fresh,
        started=any(one.phase == "Running" for one in fresh),
        stopped=_has_ended(after) and not _has_ended(before),
    )


def _gone(before: VirtualMachineInstance, now: datetime.datetime) -> Seen:
    """Its pod may be gone so soon that nobody writes a last phase. Of one that was asked to end, that is an end like others."""
    if _has_ended(before):
        return Seen()
    if before.metadata.deletion_timestamp is None:
        return Seen(stopped=True)
    listed = (*_times(before), PhaseTransition(phase="Succeeded", phase_transition_timestamp=now))
    return Seen((_transition(before, listed, len(listed) - 1),), stopped=True)


def _times(instance: VirtualMachineInstance) -> tuple[PhaseTransition, ...]:
    return (instance.status.phase_transition_timestamps if instance.status else None) or ()


def _has_ended(instance: VirtualMachineInstance) -> bool:
    return instance.status is not None and instance.status.phase in FINISHED


def _transition(instance: VirtualMachineInstance, listed: tuple[PhaseTransition, ...], place: int) -> Transition:
    one, last = listed[place], listed[place - 1] if place else None
    at, metadata = one.phase_transition_timestamp, instance.metadata
    return Transition(
        phase=one.phase,
        from_creation=_seconds(metadata.creation_timestamp, at),
        last_phase=last.phase if last else None,
        from_last_phase=_seconds(last.phase_transition_timestamp, at) if last else None,
        from_deletion=_seconds(metadata.deletion_timestamp, at) if one.phase in FINISHED else None,
    )


def _seconds(since: datetime.datetime | None, until: datetime.datetime) -> float | None:
    """Never less than none: the clocks of two machines may differ."""
    return None if since is None else max(0.0, (until - since).total_seconds())
