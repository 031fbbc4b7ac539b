"""What a machine shows: its state in one word, why, and its conditions."""

from __future__ import annotations

import msgspec

from herder.api import labels, reasons
from herder.api.kinds import DataVolume, VirtualMachine, VirtualMachineInstance
from herder.api.meta import Condition
from herder.rules.instances.needs import failed_for_good
from herder.rules.machines.wanted import FINISHED, phase_of
from herder.rules.plans import Document, condition, failing, find


class Shown(msgspec.Struct, frozen=True):
    word: str
    reason: str = ""
    message: str = ""


def shown(
    machine: VirtualMachine,
    instance: VirtualMachineInstance | None,
    volumes: tuple[DataVolume, ...],
    *,
    starts: bool,
    waits: str = "",
    saved: bool = False,
) -> Shown:
    """`starts` is whether an instance is being made or to be made; `waits` until when, after failures; `saved` is whether there is
    memory that it goes on from."""
    word = _word(machine, instance, volumes, starts=starts, waits=waits)
    word = _with_suspension(word, machine, instance, saved=saved)
    return word if word.reason else _with_what_fails(word, machine, instance)


def _with_suspension(word: Shown, machine: VirtualMachine, instance: VirtualMachineInstance | None, *, saved: bool) -> Shown:
    """In what its controller says of it, as far as that is known."""
    told = find(machine.status.conditions if machine.status else None, reasons.SUSPENDED)
    reason, message = (
        ((told.reason or "", told.message or "") if told is not None else ("", "")) if machine.spec.suspended else ("", "")
    )
    if machine.being_deleted:
        return word
    if machine.spec.suspended and instance is None:
        return Shown(reasons.SUSPENDED, reason, message)
    if machine.spec.suspended and (reason in _SAVING or word.word == reasons.STOPPING or phase_of_any(instance) in FINISHED):
        return Shown(reasons.SUSPENDING, reason, message)
    resumes = instance is None and saved if word.word == reasons.STARTING else False
    from_memory = instance is not None and labels.RESUME_FROM in instance.annotations
    if word.word == reasons.STARTING and (resumes or from_memory):
        return Shown(reasons.RESUMING, word.reason, word.message)
    return word


def phase_of_any(instance: VirtualMachineInstance | None) -> str:
    return phase_of(instance) if instance is not None else ""


# Of the guest that runs on: it is about to stand still, or does.
_SAVING = (reasons.SAVING_MEMORY,)


def _with_what_fails(word: Shown, machine: VirtualMachine, instance: VirtualMachineInstance | None) -> Shown:
    """Why it goes no further, where nobody else says so: what we do for it, or for its instance, fails again and again."""
    found = _what_fails(machine, instance)
    return word if found is None else Shown(word.word, found.reason or reasons.RECONCILE_FAILED, found.message or "")


def _what_fails(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> Condition | None:
    """Of the two the machine's own: it stands before the instance."""
    of_machine = failing(machine.status.conditions if machine.status else None)
    return of_machine or failing(instance.status.conditions if instance and instance.status else None)


def _word(
    machine: VirtualMachine, instance: VirtualMachineInstance | None, volumes: tuple[DataVolume, ...], *, starts: bool, waits: str
) -> Shown:
    if machine.being_deleted:
        return Shown(reasons.TERMINATING)
    if instance is not None and phase_of(instance) not in FINISHED:
        return _of_instance(instance)
    if starts and (failed := _volumes_shown(volumes)):
        return failed
    if waits:
        failure = machine.status.start_failure if machine.status else None
        why = f"{failure.message}; " if failure and failure.message else ""
        return Shown(reasons.CRASH_LOOP_BACK_OFF, (failure and failure.reason) or "", f"{why}it is started again at {waits}")
    return Shown(reasons.STARTING) if starts else _stopped(instance, volumes)


def _of_instance(instance: VirtualMachineInstance) -> Shown:
    status = instance.status
    reason, message = (status.reason or "", status.message or "") if status else ("", "")
    if instance.being_deleted:
        return Shown(reasons.STOPPING, reason, message)
    phase = phase_of(instance)
    if phase == "Running":
        return _running(instance, reason, message)
    if phase == "Pending":
        word = _PENDING.get(reason, reasons.PROVISIONING if reason else reasons.STARTING)
        return Shown(word, reason, message)
    if reason in (reasons.UNSCHEDULABLE, reasons.MIGRATABILITY_LEVEL_NOT_REACHED):
        return Shown(reasons.ERROR_UNSCHEDULABLE, reason, message)
    return Shown(reasons.UNKNOWN if phase == "Unknown" else reasons.STARTING, reason, message)


_PENDING = {
    reasons.MISSING_CLAIM: reasons.ERROR_PVC_NOT_FOUND,
    reasons.DATA_VOLUME_ERROR: reasons.DATA_VOLUME_ERROR,
    reasons.DATA_VOLUME_FAILED: reasons.DATA_VOLUME_ERROR,
    reasons.MISSING_SECRET: reasons.STARTING,
    reasons.MISSING_CONFIG_MAP: reasons.STARTING,
    reasons.MIGRATABILITY_LEVEL_CHANGED: reasons.STARTING,
}


def _running(instance: VirtualMachineInstance, reason: str, message: str) -> Shown:
    status = instance.status
    state = status.migration_state if status else None
    if state is not None and not state.completed:
        return Shown(reasons.MIGRATING, reason, message)
    paused = find(status.conditions if status else None, reasons.PAUSED)
    if paused is not None and paused.status == "True":
        return Shown(reasons.PAUSED, paused.reason or "", paused.message or "")
    return Shown(reasons.RUNNING, reason, message)


def _volumes_shown(volumes: tuple[DataVolume, ...]) -> Shown | None:
    """Where one of them failed for good: it will not start."""
    why = next((sentence for volume in volumes if (sentence := failed_for_good(volume))), "")
    return Shown(reasons.DATA_VOLUME_ERROR, reasons.DATA_VOLUME_FAILED, why) if why else None


def _stopped(instance: VirtualMachineInstance | None, volumes: tuple[DataVolume, ...]) -> Shown:
    """Whoever asked for it has stopped it; that it could not start again is said beside."""
    if instance is None and (failed := _volumes_shown(volumes)):
        return Shown(reasons.STOPPED, failed.reason, failed.message)
    if instance is None or instance.status is None:
        return Shown(reasons.STOPPED)
    return Shown(reasons.STOPPED, instance.status.reason or "", instance.status.message or "")


def conditions(
    machine: VirtualMachine, instance: VirtualMachineInstance | None, is_shown: Shown, *, restart_required: bool
) -> list[Document]:
    """Those of the instance that people look for on the machine, and our own."""
    ready = find(instance.status.conditions if instance and instance.status else None, reasons.READY)
    if is_shown.word in (reasons.STARTING, reasons.RESUMING) and not is_shown.reason:
        # One word for all the steps of a start: each step more would be a write more.
        starting = condition(reasons.READY, False, reasons.GUEST_STARTING, "the instance is being started")
        return [starting, *_stale(restart_required)]
    if ready is not None and ready.status == "True":
        found = [condition(reasons.READY, True, ready.reason or reasons.READY, ready.message or "")]
    else:
        reason = (ready.reason if ready else None) or reasons.GUEST_NOT_RUNNING
        message = (ready.message if ready else None) or is_shown.message or "there is no running instance"
        found = [condition(reasons.READY, False, reason, message)]
    for kind in (reasons.LIVE_MIGRATABLE, reasons.PAUSED):
        one = find(instance.status.conditions if instance and instance.status else None, kind)
        if one is not None:
            found.append(condition(kind, one.status == "True", one.reason or kind, one.message or ""))
    found += _stale(restart_required)
    fails = _what_fails(machine, instance)
    if fails is not None:
        found.append(condition(reasons.FAILURE, True, fails.reason or reasons.RECONCILE_FAILED, fails.message or ""))
    elif is_shown.word in _FAILURES or is_shown.reason == reasons.DATA_VOLUME_FAILED:
        found.append(condition(reasons.FAILURE, True, is_shown.reason or is_shown.word, is_shown.message))
    return found


def _stale(restart_required: bool) -> list[Document]:
    if not restart_required:
        return []
    message = "the template has changed since this instance was started; restart the machine to use it"
    return [condition(reasons.RESTART_REQUIRED, True, reasons.RESTART_REQUIRED, message)]


_FAILURES = (
    reasons.CRASH_LOOP_BACK_OFF,
    reasons.DATA_VOLUME_ERROR,
    reasons.ERROR_PVC_NOT_FOUND,
    reasons.ERROR_UNSCHEDULABLE,
)
