"""How starting fails, and when it is tried again.

Three things slow restarts down: a guest that never got to run (or never passed its first liveness probe) counts as a failure to
start, which pools heal; one that ran and crashed soon counts as a crash, which only makes us wait; and so does one that is always
to run and shuts itself down as soon as it is up, but only from its second time on.
"""

from __future__ import annotations

import datetime

from herder.api.backoff import doubled
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.kinds.machine import StartFailure
from herder.api.reasons import ALIVE, GUEST_LOST, LIVENESS_PROBE_NEVER_PASSED, POD_GONE
from herder.rules.machines.wanted import phase_of, run_strategy
from herder.rules.plans import Document, find, moment, text_of, without_nothing

FIRST_WAIT = 10.0
LONGEST_WAIT = 300.0
# A guest that lived this long is one that started well.
WELL_AFTER = datetime.timedelta(minutes=5)
# One that shuts itself down sooner will most likely do so again: at once would mean for ever, and keep a node busy with that.
SOON = datetime.timedelta(seconds=10)


def failure_after(machine: VirtualMachine, instance: VirtualMachineInstance | None, now: float) -> StartFailure | None:
    """What is known about failures once this instance is taken into account. Each instance counts once."""
    known = machine.status.start_failure if machine.status else None
    if instance is None or instance.status is None:
        return known
    if known is not None and known.last_failed_vmi_uid == instance.uid:
        return known
    if _shut_itself_down_soon(machine, instance, now):
        return _one_more(known, instance, now, free=1)
    if instance.status.phase == "Failed":
        return known if _taken_away(instance) else _one_more(known, instance, now)
    lives = find(instance.status.conditions, ALIVE) is None
    if instance.status.phase == "Succeeded" or (lives and _lived(instance, moment(now)) >= WELL_AFTER):
        return None
    return known


def _taken_away(instance: VirtualMachineInstance) -> bool:
    """It ran, until its pod or its Node was deleted, or its node was lost or restarted: no fault of its own, so nothing slows its
    next start down."""
    status = instance.status
    phases = [one.phase for one in (status.phase_transition_timestamps if status else None) or ()]
    return status is not None and status.reason in (POD_GONE, GUEST_LOST) and "Running" in phases


def _shut_itself_down_soon(machine: VirtualMachine, instance: VirtualMachineInstance, now: float) -> bool:
    """One that is being deleted was asked to."""
    by_itself = phase_of(instance) == "Succeeded" and not instance.being_deleted
    return by_itself and run_strategy(machine) == "Always" and _lived(instance, moment(now)) < SOON


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


def _one_more(known: StartFailure | None, instance: VirtualMachineInstance, now: float, free: int = 0) -> StartFailure | None:
    """`free`: after so many of them nothing waits yet."""
    ended = moment(now)
    lived = _lived(instance, ended)
    status = instance.status
    never_passed = status is not None and status.reason == LIVENESS_PROBE_NEVER_PASSED
    if lived >= WELL_AFTER and not never_passed:
        return None  # it ran well, and is started again at once
    fails = (known.consecutive_fail_count or 0) if known else 0
    crashes = (known.consecutive_crash_count or 0) if known else 0
    if never_passed or (lived == datetime.timedelta(0) and phase_of(instance) == "Failed"):
        fails += 1
    else:
        # It did start: what came before is no series of failed starts any more.
        fails, crashes = 0, crashes + 1
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


def _lived(instance: VirtualMachineInstance, until: datetime.datetime) -> datetime.timedelta:
    """From the moment when the guest ran to its end, or to now."""
    times = {
        one.phase: one.phase_transition_timestamp
        for one in (instance.status.phase_transition_timestamps if instance.status else None) or ()
    }
    began = times.get("Running")
    if began is None:
        return datetime.timedelta(0)
    return max((times.get("Failed") or times.get("Succeeded") or until) - began, datetime.timedelta(seconds=1))
