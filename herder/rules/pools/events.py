"""What a pool tells about turns of its rollout. What is made and deleted is told by who has done it."""

from __future__ import annotations

from collections.abc import Sequence

from herder.api import reasons
from herder.api.kinds import VirtualMachinePool
from herder.rules.plans import Event, find
from herder.rules.pools.status import Standing, named


def events_of(pool: VirtualMachinePool, standing: Standing, now: float) -> tuple[Event, ...]:
    old = find(pool.status.conditions if pool.status else None, reasons.PROGRESSING)
    before = old.reason if old is not None else ""
    course, wanted = standing.course, standing.wanted
    if course.state == "Halted" and before != reasons.PROGRESS_DEADLINE_EXCEEDED and course.stuck is not None:
        message = f"rollout of {wanted.name} halted: {course.stuck.name} did not become available in time"
        return (Event("Warning", reasons.PROGRESS_DEADLINE_EXCEEDED, message),)
    if course.state == "RolledBack" and before != reasons.ROLLED_BACK:
        message = f"rollout of {wanted.name} failed: machines go back to {course.target.name}"
        return (Event("Warning", reasons.ROLLED_BACK, message),)
    return ()


def created(names: Sequence[str]) -> Event:
    return Event("Normal", reasons.SUCCESSFUL_CREATE, f"created {_machines(names)}")


def removed(names: Sequence[str], *, preserved: bool) -> Event:
    kept = f", {_whose(names)} volumes are kept" if preserved else ""
    return Event("Normal", reasons.SUCCESSFUL_DELETE, f"scaled in: deleted {_machines(names)}{kept}")


def suspended(names: Sequence[str]) -> Event:
    return Event("Normal", reasons.SAVING_MEMORY, f"to be scaled in, {_whose(names)} memory is saved first: {_machines(names)}")


def stay(names: Sequence[str]) -> Event:
    return Event("Normal", reasons.RESUMED, f"not taken after all, and resumed: {_machines(names)}")


def activated(names: Sequence[str]) -> Event:
    return Event("Normal", reasons.STANDBY_ACTIVATED, f"scaled out with standby machines: {_machines(names)}")


def healed(names: Sequence[str]) -> Event:
    gone = f"deleted with {_whose(names)} volumes, to be made again"
    return Event("Warning", reasons.HEALED, f"did not start: {gone}: {_machines(names)}")


def updated(names: Sequence[str], revision: str) -> Event:
    return Event("Normal", reasons.SUCCESSFUL_UPDATE, f"gave revision {revision} to {_machines(names)}")


def adopted(names: Sequence[str]) -> Event:
    return Event("Normal", reasons.ADOPTED, f"attached {_machines(names)}")


def refused(name: str, message: str, *, is_there: bool) -> Event:
    """`is_there`: a machine of the pool, and not one that is to be made."""
    return Event("Warning", reasons.FAILED_UPDATE if is_there else reasons.FAILED_CREATE, f"{name}: {message}")


def _whose(names: Sequence[str]) -> str:
    return "its" if len(names) == 1 else "their"


def _machines(names: Sequence[str]) -> str:
    return f"{len(names)} VirtualMachines: {named(names)}" if len(names) != 1 else f"VirtualMachine {names[0]}"
