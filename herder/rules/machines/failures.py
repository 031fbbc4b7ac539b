"""How starting fails, and when it is tried again.

Three things slow restarts down. A guest that never got to run, or ended before its first liveness probe had passed, has failed to
start, which pools heal. One that started and crashed soon counts as a crash, which only makes us wait; without a liveness probe
that is all that can be said of an early crash. So does one that is always to run and shuts itself down as soon as it is up, but
only from its second time on. What was done to a guest by its node or by people is never a failure to start.
"""

from __future__ import annotations

import datetime

import msgspec

from herder.api import reasons
from herder.api.backoff import doubled
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.kinds.machine import StartFailure
from herder.rules.machines.wanted import FINISHED, phase_of, run_strategy
from herder.rules.plans import Document, Event, find, moment, text_of, without_nothing

FIRST_WAIT = 10.0
LONGEST_WAIT = 300.0
# A guest that lived this long is one that started well.
WELL_AFTER = datetime.timedelta(minutes=5)
# One that shuts itself down sooner will most likely do so again: at once would mean for ever, and keep a node busy with that.
SOON = datetime.timedelta(seconds=10)
NOTHING_YET = StartFailure()
# Its pod or its Node was deleted, or its node was lost or restarted.
_TAKEN_AWAY = (reasons.POD_GONE, reasons.GUEST_LOST)
_BY_OTHERS = (*_TAKEN_AWAY, reasons.SWITCHED_OFF, reasons.GUEST_RECORD_UNREADABLE)


def failure_after(machine: VirtualMachine, instance: VirtualMachineInstance | None, now: float) -> StartFailure | None:
    """What is known about failures once this instance is taken into account. Each instance counts once."""
    known = machine.status.start_failure if machine.status else None
    if instance is None or instance.status is None:
        return known
    if known is not None and known.last_failed_vmi_uid == instance.uid:
        return known
    phase = phase_of(instance)
    if phase == "Succeeded" and instance.status.reason == reasons.SUSPENDED:
        return known
    if phase not in FINISHED:
        return _while_it_lives(known, instance, now)
    if instance.being_deleted:
        # It was asked to end, and says nothing about how it starts, unless it had started.
        return None if phase == "Succeeded" and has_started(instance) else known
    return _after_failed(known, instance, now) if phase == "Failed" else _after_shut_down(known, machine, instance, now)


def has_started(instance: VirtualMachineInstance) -> bool:
    """It ran, and its first liveness probe has passed, where it has one."""
    if instance.spec.liveness_probe is None:
        return _began(instance) is not None or phase_of(instance) in ("Running", "Succeeded")
    alive = find(instance.status.conditions if instance.status else None, reasons.ALIVE)
    return alive is not None and alive.status == "True"


def _while_it_lives(known: StartFailure | None, instance: VirtualMachineInstance, now: float) -> StartFailure | None:
    """Once it has started the series of failed starts is over; that it crashed before is remembered until it has run well."""
    if known is None or not has_started(instance):
        return known
    if not known.consecutive_crash_count or _lived(instance, moment(now)) >= WELL_AFTER:
        return None
    return msgspec.structs.replace(known, consecutive_fail_count=0)


def _after_failed(known: StartFailure | None, instance: VirtualMachineInstance, now: float) -> StartFailure | None:
    started, lived = has_started(instance), _lived(instance, moment(now))
    reason = instance.status.reason if instance.status else None
    if reason in _TAKEN_AWAY and _began(instance) is not None:
        return known  # nothing slows its next start down
    if started and lived >= WELL_AFTER:
        return None  # it ran well, and is started again at once
    fails, crashes = _counts(known)
    if _is_by_others(reason):
        return _one_more(known, instance, now, fails, crashes + 1)
    if not started:
        return _one_more(known, instance, now, fails + 1, crashes)
    # It did start: what came before is no series of failed starts any more.
    return _one_more(known, instance, now, 0, crashes + 1)


def _after_shut_down(
    known: StartFailure | None, machine: VirtualMachine, instance: VirtualMachineInstance, now: float
) -> StartFailure | None:
    fails, crashes = _counts(known)
    if run_strategy(machine) != "Always":
        return None  # it may end
    if not has_started(instance):
        return _one_more(known, instance, now, fails + 1, crashes)
    if _lived(instance, moment(now)) < SOON:
        return _one_more(known, instance, now, 0, crashes + 1, free=1)
    return None


def crashed_early(machine: VirtualMachine, instance: VirtualMachineInstance, failure: StartFailure, now: float) -> Event | None:
    """Told once in a series: nobody asks the guest whether it lives, so nobody can tell a start that failed."""
    known = (machine.status.start_failure if machine.status else None) or NOTHING_YET
    if instance.spec.liveness_probe is not None or _began(instance) is None or phase_of(instance) != "Failed":
        return None
    counted = known.last_failed_vmi_uid != failure.last_failed_vmi_uid == instance.uid
    told = bool(known.consecutive_crash_count) and not _is_by_others(known.reason)
    if not counted or told or _is_by_others(failure.reason):
        return None
    seconds = int(_lived(instance, moment(now)).total_seconds())
    why = failure.reason or reasons.GUEST_CRASHED
    sentence = f"the guest crashed {seconds} s after it had started ({why}); without a livenessProbe that is not counted as a"
    return Event("Warning", reasons.CRASHED_EARLY, f"{sentence} failure to start, so no pool heals it")


def _is_by_others(reason: str | None) -> bool:
    """Done to it by its node or by people, or there was no room for it."""
    return reason is not None and (reason in _BY_OTHERS or reason.startswith(reasons.OUT_OF))


def fails_by_itself(failure: StartFailure | None) -> bool:
    """It crashed or did not start, and neither its node nor people are to blame for the last time."""
    return failure is not None and any(_counts(failure)) and not _is_by_others(failure.reason)


def wait_until(failure: StartFailure | None) -> datetime.datetime | None:
    return failure.retry_after_timestamp if failure else None


def document_of(failure: StartFailure | None) -> Document | None:
    if failure is None:
        return None
    return without_nothing(
        {
            "consecutiveFailCount": failure.consecutive_fail_count,
            "consecutiveCrashCount": failure.consecutive_crash_count,
            "lastFailedVMIUID": failure.last_failed_vmi_uid,
            "firstFailureTimestamp": text_of(failure.first_failure_timestamp) if failure.first_failure_timestamp else None,
            "retryAfterTimestamp": text_of(failure.retry_after_timestamp) if failure.retry_after_timestamp else None,
            "reason": failure.reason,
            "message": failure.message,
        }
    )


def _counts(known: StartFailure | None) -> tuple[int, int]:
    """Failures to start in a row, and crashes."""
    counted = known or NOTHING_YET
    return counted.consecutive_fail_count or 0, counted.consecutive_crash_count or 0


def _one_more(
    known: StartFailure | None, instance: VirtualMachineInstance, now: float, fails: int, crashes: int, free: int = 0
) -> StartFailure:
    """`free`: after so many of them nothing waits yet."""
    ended, status = moment(now), instance.status
    return StartFailure(
        consecutive_fail_count=fails,
        consecutive_crash_count=crashes,
        last_failed_vmi_uid=instance.uid,
        first_failure_timestamp=(known.first_failure_timestamp if known else None) or ended,
        retry_after_timestamp=ended + datetime.timedelta(seconds=wait_after(fails + crashes - free)),
        reason=status.reason if status else None,
        message=status.message if status else None,
    )


def wait_after(times: int) -> float:
    """10 s, and twice as long after each further failure, up to 5 minutes."""
    return 0.0 if times <= 0 else doubled(FIRST_WAIT, LONGEST_WAIT, times - 1)


def _times(instance: VirtualMachineInstance) -> dict[str, datetime.datetime]:
    """When each phase began."""
    listed = (instance.status.phase_transition_timestamps if instance.status else None) or ()
    return {one.phase: one.phase_transition_timestamp for one in listed}


def _began(instance: VirtualMachineInstance) -> datetime.datetime | None:
    """When the guest ran first; None where it never did."""
    return _times(instance).get("Running")


def _lived(instance: VirtualMachineInstance, until: datetime.datetime) -> datetime.timedelta:
    """From the moment when the guest ran to its end, or to now."""
    times = _times(instance)
    began = times.get("Running")
    if began is None:
        return datetime.timedelta(0)
    return max((times.get("Failed") or times.get("Succeeded") or until) - began, datetime.timedelta(seconds=1))
