"""On which revision of its pool's template a machine was last known to work (seed 003): one that fails on a newer one is not to
blame for it, and its disks are not wiped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from herder.api import labels, reasons
from herder.api.kinds import DataVolume, VirtualMachine, VirtualMachineInstance
from herder.rules.machines.failures import WELL_AFTER, has_started
from herder.rules.plans import find

# What stands there of a machine that was Ready before any pool gave it a revision: it may be attached to one later, whose template
# must not cost it its disks. No revision is called so: each begins with the name of its pool, and a dash.
NO_REVISION: Final = "none"


def ready_revision(
    machine: VirtualMachine, instance: VirtualMachineInstance | None, volumes: Iterable[DataVolume], *, ready: bool, now: float
) -> str | None:
    """That of the first instance that was Ready; a later one takes its place only once it has proven itself. None of a machine that
    never was Ready. `volumes` are its own: those that its pool had kept say what their last machine was ready on."""
    known = _known(machine) or next((kept for one in volumes if (kept := one.annotations.get(labels.READY_REVISION))), None)
    revision = _to_prove(machine, instance, ready=ready)
    if instance is None or revision is None:
        return known
    return revision if known is None or _proven_in(instance, now) == 0 else known


def look_when_proven(machine: VirtualMachine, instance: VirtualMachineInstance | None, *, ready: bool, now: float) -> float | None:
    """Seconds until time alone proves the revision of this instance; None where it does not, or need not."""
    if instance is None or _known(machine) is None or _to_prove(machine, instance, ready=ready) is None:
        return None
    return _proven_in(instance, now) or None


def _known(machine: VirtualMachine) -> str | None:
    return machine.status.ready_revision if machine.status else None


def _to_prove(machine: VirtualMachine, instance: VirtualMachineInstance | None, *, ready: bool) -> str | None:
    """Another revision than the known one, of an instance that is Ready."""
    if instance is None or not ready:
        return None
    revision = instance.labels.get(labels.POOL_REVISION) or NO_REVISION
    return revision if revision != _known(machine) else None


def _proven_in(instance: VirtualMachineInstance, now: float) -> float | None:
    """Seconds; 0 where it has proven itself: its first liveness probe has passed, or it has been Ready for long enough. None where
    no time will tell."""
    if instance.spec.liveness_probe is not None:
        return 0 if has_started(instance) else None
    ready = find(instance.status.conditions if instance.status else None, reasons.READY)
    if ready is None or ready.last_transition_time is None:
        return None
    return max(0.0, ready.last_transition_time.timestamp() + WELL_AFTER.total_seconds() - now)
