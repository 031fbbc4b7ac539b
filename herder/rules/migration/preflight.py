"""What a person who asks for a migration can be told before one is made."""

from __future__ import annotations

from herder.api import reasons
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.rules.machines.waiting import shown_word, unschedulable_advice

# A guest that starts is moved once it runs. These do not start by themselves.
_STUCK = (
    reasons.UNSCHEDULABLE,
    reasons.MIGRATABILITY_LEVEL_NOT_REACHED,
    reasons.MISSING_CLAIM,
    reasons.MISSING_SECRET,
    reasons.MISSING_CONFIG_MAP,
    reasons.MISSING_DATA_VOLUME,
    reasons.DATA_VOLUME_ERROR,
    reasons.DATA_VOLUME_FAILED,
)


def why_no_instance(machine: VirtualMachine) -> str:
    """Of a machine that has no instance."""
    name = machine.name
    return f"VirtualMachine {name} is {shown_word(machine)}, so there is no guest to move; `herder start {name}` starts it"


def why_no_guest(instance: VirtualMachineInstance) -> str:
    """Of an instance whose guest does not start: why, and what to do. Empty where it runs, or will."""
    status = instance.status
    if status is None or status.phase not in ("Pending", "Scheduling") or status.reason not in _STUCK:
        return ""
    name, reason = instance.name, status.reason
    unschedulable = reason in (reasons.UNSCHEDULABLE, reasons.MIGRATABILITY_LEVEL_NOT_REACHED)
    advice = unschedulable_advice(reason, name) if unschedulable else f"`kubectl describe vmi {name}` says more"
    why = f"{reason}: {status.message}".rstrip(". ") if status.message else reason
    return f"the guest of {name} does not run, so there is nothing to move: {why}; {advice}"
