"""Whether a machine should run: its run strategy, what became of its last instance, and what people asked for."""

from __future__ import annotations

from typing import Literal

from herder.api import labels, reasons
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.kinds.machine import RunStrategy
from herder.api.memory import MemoryState

Wanted = Literal["start", "replace", "stop", "leave"]
FINISHED = ("Succeeded", "Failed")


def run_strategy(machine: VirtualMachine) -> RunStrategy:
    """`running` is the older way to say Always and Halted."""
    spec = machine.spec
    if spec.run_strategy is not None:
        return spec.run_strategy
    return "Always" if spec.running else "Halted"


def phase_of(instance: VirtualMachineInstance) -> str:
    return (instance.status.phase if instance.status else None) or "Pending"


def start_requested(machine: VirtualMachine) -> str | None:
    """A request to start that nobody acted upon yet."""
    request = machine.annotations.get(labels.START_REQUEST)
    handled = machine.status.observed_start_request if machine.status else None
    return request if request and request != handled else None


def wanted(machine: VirtualMachine, instance: VirtualMachineInstance | None, memory: MemoryState | None = None) -> Wanted:
    """start: make an instance; replace: end this one and make another; stop: end this one and make none. `memory`: of its guest, as
    far as its claim has it."""
    strategy = run_strategy(machine)
    if machine.spec.suspended or (memory == "Saving" and _was_saved(instance)):
        # Who is to be stopped need not be saved before; what was saved just now is written down first.
        stops = instance is not None and _is_stopped(machine, strategy, instance) and not _was_saved(instance)
        return "stop" if stops else _suspended(instance, memory)
    if instance is None:
        # Whoever is resumed starts, however it was started before.
        goes_on = memory in ("Saved", "Resuming") and strategy != "Halted"
        return "start" if goes_on or _starts(machine, strategy) else "leave"
    if memory == "Saved" and _was_saved(instance) and strategy != "Halted":
        return "replace"
    if phase_of(instance) in FINISHED:
        return _after_end(machine, strategy, phase_of(instance))
    if _is_stopped(machine, strategy, instance):
        return "stop"
    if machine.annotations.get(labels.RESTART_REQUEST) == instance.uid:
        return "replace"
    return "leave"


def _is_stopped(machine: VirtualMachine, strategy: RunStrategy, instance: VirtualMachineInstance) -> bool:
    return strategy == "Halted" or (strategy == "Manual" and machine.annotations.get(labels.STOP_REQUEST) == instance.uid)


def _suspended(instance: VirtualMachineInstance | None, memory: MemoryState | None) -> Wanted:
    """Its controller saves its memory first. What has ended otherwise, or never ran, has none."""
    if instance is None or (memory == "Saving" and _was_saved(instance)):
        return "leave"
    phase = phase_of(instance)
    unplaced = phase in ("Pending", "Scheduling") and labels.RESUME_FROM not in instance.annotations
    return "stop" if phase in FINISHED or unplaced else "leave"


def _was_saved(instance: VirtualMachineInstance | None) -> bool:
    """Its guest is over because its memory was saved."""
    status = instance.status if instance is not None else None
    return status is not None and status.phase == "Succeeded" and status.reason == reasons.SUSPENDED


def _starts(machine: VirtualMachine, strategy: RunStrategy) -> bool:
    if strategy in ("Always", "RerunOnFailure"):
        return True
    if strategy == "Halted":
        return False
    if strategy == "Once" and not (machine.status and machine.status.last_instance_uid):
        return True
    return start_requested(machine) is not None or _is_being_restarted(machine)


def _is_being_restarted(machine: VirtualMachine) -> bool:
    """The instance that was to be replaced is gone, and nothing has followed it. Who also asked to stop it wants nothing more."""
    last = machine.status.last_instance_uid if machine.status else None
    asked = machine.annotations.get(labels.RESTART_REQUEST)
    return asked is not None and asked == last and machine.annotations.get(labels.STOP_REQUEST) != last


def _after_end(machine: VirtualMachine, strategy: RunStrategy, phase: str) -> Wanted:
    """What is left of an instance that ended by itself tells how it ended, so it stays where nothing follows."""
    if strategy == "Halted":
        return "stop"
    if strategy == "Always" or (strategy == "RerunOnFailure" and phase == "Failed"):
        return "replace"
    return "replace" if start_requested(machine) is not None or _is_being_restarted(machine) else "leave"
