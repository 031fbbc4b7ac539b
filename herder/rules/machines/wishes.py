"""What people ask of a machine (start, stop, restart, pause, unpause, suspend, resume), as the patch that says so. kubectl can
patch the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from herder.api import labels, reasons
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.rules.machines.wanted import FINISHED, phase_of, run_strategy
from herder.rules.plans import Document, find
from herder.rules.suspension.savable import why_never

Verb = Literal["start", "stop", "restart", "pause", "unpause", "suspend", "resume"]


class Impossible(Exception):
    """It cannot be asked of this machine now; the sentence says why, and what can."""


class Wish(msgspec.Struct, frozen=True):
    """The patch for the machine or for its instance; None where all is as it is wished."""

    patch: Document | None
    of_instance: bool = False


NOTHING_TO_DO = Wish(None)


def wish(verb: Verb, machine: VirtualMachine, instance: VirtualMachineInstance | None, fresh: str) -> Wish:
    """`fresh` is a value that no request had before. Raises `Impossible`."""
    if machine.being_deleted:
        raise Impossible(f"VirtualMachine {machine.name} is being deleted")
    # One of somebody else may have the name; and what has ended can no longer be asked for anything.
    live = instance if instance is not None and instance.controller_uid == machine.uid and _lives(instance) else None
    return _WISHES[verb](machine, live, fresh)


def _start(machine: VirtualMachine, instance: VirtualMachineInstance | None, fresh: str) -> Wish:
    strategy = run_strategy(machine)
    if machine.spec.suspended:
        raise Impossible(f"VirtualMachine {machine.name} is suspended; `herder resume {machine.name}` lets it go on")
    if strategy == "Halted":
        return _keep(machine, running=True)
    if instance is not None or strategy == "Always":
        return NOTHING_TO_DO
    return _annotated(machine, labels.START_REQUEST, fresh)


def _stop(machine: VirtualMachine, instance: VirtualMachineInstance | None, fresh: str) -> Wish:
    strategy = run_strategy(machine)
    if strategy == "Manual":
        return _annotated(machine, labels.STOP_REQUEST, instance.uid) if instance is not None else NOTHING_TO_DO
    return NOTHING_TO_DO if strategy == "Halted" else _keep(machine, running=False)


def _restart(machine: VirtualMachine, instance: VirtualMachineInstance | None, fresh: str) -> Wish:
    return _annotated(machine, labels.RESTART_REQUEST, _running(machine, instance, "restart").uid)


def _pause(machine: VirtualMachine, instance: VirtualMachineInstance | None, fresh: str) -> Wish:
    return _paused(_running(machine, instance, "pause"), "true")


def _unpause(machine: VirtualMachine, instance: VirtualMachineInstance | None, fresh: str) -> Wish:
    return _paused(_running(machine, instance, "unpause"), "false")


def _suspend(machine: VirtualMachine, instance: VirtualMachineInstance | None, fresh: str) -> Wish:
    if machine.spec.suspended:
        return NOTHING_TO_DO
    running = _running(machine, instance, "suspend")
    if why := why_never(running.spec):
        raise Impossible(f"VirtualMachine {machine.name} cannot be suspended: {why}")
    return Wish({"metadata": {"uid": machine.uid}, "spec": {"suspended": True}})


def _resume(machine: VirtualMachine, instance: VirtualMachineInstance | None, fresh: str) -> Wish:
    return Wish({"metadata": {"uid": machine.uid}, "spec": {"suspended": None}}) if machine.spec.suspended else NOTHING_TO_DO


_WISHES: dict[Verb, Callable[[VirtualMachine, VirtualMachineInstance | None, str], Wish]] = {
    "start": _start,
    "stop": _stop,
    "restart": _restart,
    "pause": _pause,
    "unpause": _unpause,
    "suspend": _suspend,
    "resume": _resume,
}


def _lives(instance: VirtualMachineInstance) -> bool:
    return phase_of(instance) not in FINISHED and not instance.being_deleted


def _running(machine: VirtualMachine, instance: VirtualMachineInstance | None, verb: Verb) -> VirtualMachineInstance:
    if instance is None:
        shown = (machine.status.printable_status if machine.status else None) or reasons.STOPPED
        raise Impossible(
            f"VirtualMachine {machine.name} is {shown}, so there is nothing to {verb}; `herder start {machine.name}` starts it"
        )
    return instance


def _keep(machine: VirtualMachine, *, running: bool) -> Wish:
    """In the words that the machine uses already: it may have `running` or `runStrategy`, not both."""
    if machine.spec.run_strategy is None:
        return Wish({"metadata": {"uid": machine.uid}, "spec": {"running": running}})
    return Wish({"metadata": {"uid": machine.uid}, "spec": {"runStrategy": "Always" if running else "Halted"}})


def _annotated(machine: VirtualMachine, name: str, value: str) -> Wish:
    return Wish({"metadata": {"uid": machine.uid, "annotations": {name: value}}})


def _paused(instance: VirtualMachineInstance, value: str) -> Wish:
    condition = find(instance.status.conditions if instance.status else None, reasons.PAUSED)
    is_so = "true" if condition is not None and condition.status == "True" else "false"
    # A guest that starts paused is so without having been asked.
    if value == is_so == instance.annotations.get(labels.PAUSE, is_so):
        return NOTHING_TO_DO
    return Wish({"metadata": {"uid": instance.uid, "annotations": {labels.PAUSE: value}}}, of_instance=True)
