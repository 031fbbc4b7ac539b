"""Whether a machine should run: its run strategy, what became of its last instance, and what people asked for."""

from __future__ import annotations

from typing import Literal

from herder.api import labels
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.kinds.machine import RunStrategy

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


def wanted(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> Wanted:
    """start: make an instance; replace: end this one and make another; stop: end this one and make none."""
    strategy = run_strategy(machine)
    if instance is None:
        return "start" if _starts(machine, strategy) else "leave"
    if phase_of(instance) in FINISHED:
        return _after_end(machine, strategy, phase_of(instance))
    if strategy == "Halted" or (strategy == "Manual" and machine.annotations.get(labels.STOP_REQUEST) == instance.uid):
        return "stop"
    if machine.annotations.get(labels.RESTART_REQUEST) == instance.uid:
        return "replace"
    return "leave"


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
