"""Whether what was asked of a machine has come true, is still under way, or cannot come true."""

from __future__ import annotations

import msgspec

from herder.api import labels, reasons
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.rules.machines.wishes import Impossible, Verb
from herder.rules.plans import find

_GOALS: dict[Verb, tuple[str, ...]] = {
    # With startStrategy Paused it waits to be unpaused, and has been started all the same.
    "start": (reasons.RUNNING, reasons.PAUSED, reasons.MIGRATING),
    "stop": (reasons.STOPPED,),
    "restart": (reasons.RUNNING, reasons.PAUSED, reasons.MIGRATING),
    "pause": (reasons.PAUSED,),
    "unpause": (reasons.RUNNING, reasons.MIGRATING),
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
    if word in _HOPELESS or word == reasons.STOPPED or _fails(now):
        raise Impossible(told(now))
    if asked.verb in ("pause", "unpause") and _is_another(asked, now):
        raise Impossible(f"{told(now)}; the instance that was asked to {asked.verb} is gone")
    return False


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
