"""Whether what was asked of a machine has come true, is still under way, or cannot come true."""

from __future__ import annotations

import msgspec

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.guest import report_of
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.rules.machines.wishes import Impossible, Verb
from herder.rules.plans import find, text_of

_GOALS: dict[Verb, tuple[str, ...]] = {
    # With startStrategy Paused it waits to be unpaused, and has been started all the same.
    "start": (reasons.RUNNING, reasons.PAUSED, reasons.MIGRATING),
    # Who is suspended does not run, and is not started when it is resumed.
    "stop": (reasons.STOPPED, reasons.SUSPENDED),
    "restart": (reasons.RUNNING, reasons.PAUSED, reasons.MIGRATING),
    "pause": (reasons.PAUSED,),
    "unpause": (reasons.RUNNING, reasons.MIGRATING),
    "suspend": (reasons.SUSPENDED,),
    # Suspended while it was paused, it is so again.
    "resume": (reasons.RUNNING, reasons.PAUSED, reasons.MIGRATING),
}
# They may pass, but not soon and not by themselves: better to say so than to wait in silence.
_HOPELESS = (
    reasons.CRASH_LOOP_BACK_OFF,
    reasons.ERROR_UNSCHEDULABLE,
    reasons.ERROR_PVC_NOT_FOUND,
    reasons.DATA_VOLUME_ERROR,
    reasons.TERMINATING,
)

# Where it is can be said of these; what has ended was somewhere.
_SOMEWHERE = (reasons.RUNNING, reasons.PAUSED, reasons.MIGRATING, reasons.STOPPING)


class Asked(msgspec.Struct, frozen=True):
    """What was asked, and of what: the machine right after the patch, and the instance before it."""

    verb: Verb
    machine: VirtualMachine
    instance: VirtualMachineInstance | None


def reached(asked: Asked, now: VirtualMachine | None) -> bool:
    """Raises `Impossible` once it cannot be."""
    if now is None or now.uid != asked.machine.uid:
        raise Impossible(f"VirtualMachine {asked.machine.name} was deleted")
    word = shown_word(now)
    if not _is_about(asked, now):
        return False
    if word in _GOALS[asked.verb]:
        return True
    if asked.verb == "stop":
        return False
    if asked.verb == "suspend" and (why := _not_suspended(now)):
        raise Impossible(f"{told(now)}: {why}")
    if is_hopeless(now) or word == reasons.STOPPED:
        advice = _advice(now)
        raise Impossible(f"{told(now).rstrip('. ')}; {advice}" if advice else told(now))
    if asked.verb in ("pause", "unpause") and _is_another(asked, now):
        raise Impossible(f"{told(now)}; the instance that was asked to {asked.verb} is gone")
    return False


def _not_suspended(machine: VirtualMachine) -> str:
    """Why its memory cannot be saved, or could not be: it goes on until somebody does something about it."""
    found = find(machine.status.conditions if machine.status else None, reasons.SUSPENDED)
    refused = (reasons.CANNOT_SAVE_MEMORY, reasons.SAVE_FAILED, reasons.CLAIM_NOT_OWNED)
    return (found.message or "") if found is not None and found.reason in refused else ""


def is_hopeless(machine: VirtualMachine) -> bool:
    return shown_word(machine) in _HOPELESS or _fails(machine)


def _advice(machine: VirtualMachine) -> str:
    if shown_word(machine) != reasons.ERROR_UNSCHEDULABLE:
        return ""
    return unschedulable_advice((machine.status.reason if machine.status else None) or "", machine.name)


def unschedulable_advice(reason: str, name: str) -> str:
    """What a person can do for a machine that no node takes."""
    if reason == reasons.MIGRATABILITY_LEVEL_NOT_REACHED:
        return "`herder explain migratability` shows the level of each node"
    return f"`herder explain placement vm/{name}` shows each node; ask for less, or add or free a node"


def waits_for(asked: Asked, now: VirtualMachine, instance: VirtualMachineInstance | None, pod: Pod | None) -> str:
    """What keeps it where it is, for who has seen nothing happen for a while. The pod is that of the instance."""
    status = now.status
    if status is None or (status.observed_generation or 0) < (asked.machine.metadata.generation or 0):
        return f"no controller has answered to VirtualMachine {now.name} yet; `herder up` runs them, and `herder controllers`"
    said = told(now)
    if status.message:
        return said
    step = _ending(instance, pod) or _beginning(instance, pod)
    return f"{said}: {step}" if step else said


def _ending(instance: VirtualMachineInstance | None, pod: Pod | None) -> str:
    end = pod.metadata.deletion_timestamp if pod is not None else None
    if end is not None:
        return f"its guest was asked to shut down, and is switched off at {text_of(end)} if it has not"
    return "its instance is being ended" if instance is not None and instance.being_deleted else ""


def _beginning(instance: VirtualMachineInstance | None, pod: Pod | None) -> str:
    if instance is None:
        return "its instance is about to be made"
    status = instance.status
    if status is not None and status.message:
        return status.message
    if pod is None:
        return "its pod is about to be made"
    if not pod.spec.node_name:
        refused = next((one for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "False"), None)
        why = refused.message if refused is not None else ""
        return why or f"its pod {pod.name} waits for the scheduler to find a node"
    report = report_of(pod)
    return (
        report.message if report is not None else ""
    ) or f"it waits for {pod.spec.node_name} to start the guest (pod {pod.name})"


def _fails(machine: VirtualMachine) -> bool:
    failure = find(machine.status.conditions if machine.status else None, reasons.FAILURE)
    return failure is not None and failure.status == "True"


def shown_word(machine: VirtualMachine) -> str:
    return (machine.status.printable_status if machine.status else None) or reasons.UNKNOWN


def told(machine: VirtualMachine) -> str:
    """The state in one line."""
    status = machine.status
    where = f" on {status.node_name}" if status and status.node_name and shown_word(machine) in _SOMEWHERE else ""
    why = f": {status.message}" if status and status.message else ""
    return f"VirtualMachine {machine.name} is {shown_word(machine)}{where}{why}"


def _is_about(asked: Asked, now: VirtualMachine) -> bool:
    """Whether the status was written by somebody who knew of what was asked."""
    status = now.status
    if status is None or (status.observed_generation or 0) < (asked.machine.metadata.generation or 0):
        return False
    if asked.verb == "restart":
        return _is_another(asked, now)
    request = asked.machine.annotations.get(labels.START_REQUEST)
    return asked.verb != "start" or not request or shown_word(now) != reasons.STOPPED or status.observed_start_request == request


def _is_another(asked: Asked, now: VirtualMachine) -> bool:
    return asked.instance is not None and now.status is not None and now.status.last_instance_uid != asked.instance.uid
