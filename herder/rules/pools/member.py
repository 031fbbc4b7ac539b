"""One machine of a pool, as far as the pool has to know it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping

import msgspec

from herder.api import labels, reasons
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.kinds.instance import VirtualMachineInstanceStatus
from herder.api.memory import MemoryState
from herder.rules.machines.failures import fails_by_itself
from herder.rules.machines.preserved import was_kept
from herder.rules.machines.wanted import FINISHED, phase_of, run_strategy, wanted
from herder.rules.plans import find
from herder.rules.pools.naming import number_of
from herder.rules.pools.save_failure import SaveFailure, save_failure_of
from herder.rules.suspension.savable import why_never

FIRST = "first"
NEVER = "never"


class RunField(msgspec.Struct, frozen=True):
    """How a machine says when it runs: by `running` or by `runStrategy`."""

    name: str
    value: bool | str


class ReadyPeriod(msgspec.Struct, frozen=True):
    """A time during which a machine was Ready, and the revision that it ran."""

    revision: str
    since: float
    # Endless where the machine itself has not yet heard that it is over.
    until: float = math.inf


class Suspension(msgspec.Struct, frozen=True):
    """What is known of a machine that is to be suspended: its condition, as the controller of suspensions writes it."""

    # Asked for by its pool, to take it away.
    by_pool: bool = False
    holds: bool = False
    reason: str = ""
    message: str = ""

    @property
    def problem(self) -> str:
        """Why its memory is not saved; empty while it may be."""
        return self.message or self.reason if not self.holds and self.reason in _PROBLEMS else ""


_PROBLEMS = (reasons.CANNOT_SAVE_MEMORY, reasons.SAVE_FAILED, reasons.CLAIM_NOT_OWNED)


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """Made of a VirtualMachine and its instance once for each of their states: a pool of thousands is looked at often."""

    name: str
    uid: str
    resource_version: str
    # None where the name is none that the pool would give.
    number: int | None
    created: float
    labels: Mapping[str, str]
    # first, never, or nothing.
    scale_in: str = ""
    # Somebody asked to take this one, and to give it this revision, before others.
    remove_requested: bool = False
    update_requested: str = ""
    deleting: bool = False
    # Of the machine, and of the instance that is alive.
    revision: str = ""
    instance_revision: str = ""
    # When the pool gave it its revision.
    updated: float = 0.0
    # Of the instance that is alive; empty where there is none. Of the one that was said to have the revision without a restart.
    instance_uid: str = ""
    updated_in_place: str = ""
    # Its instance is alive and on its way out, so that another one can follow.
    restarting: bool = False
    # It is alive and being deleted already.
    ending: bool = False
    # What was asked for before: uid of the instance to replace, and names in the template of volumes to make again.
    restart_request: str = ""
    reprovision: tuple[str, ...] = ()
    node: str = ""
    # Its run strategy keeps it off (`off`), and nothing of it runs any more (`halted`).
    off: bool = False
    halted: bool = False
    # Ready, and nobody has asked its instance to go.
    ready: bool = False
    ready_since: float = 0.0
    # The last time before that at which it was Ready, and whether it has failed by itself since.
    last_ready: ReadyPeriod | None = None
    crashed: bool = False
    running: bool = False
    paused: bool = False
    migrating: bool = False
    # Nothing of it runs, because it failed before and waits until it is tried again.
    waits_to_retry: bool = False
    # Failures to start in a row, and since when.
    failures: int = 0
    failing_since: float = 0.0
    # One of its volumes failed for good.
    volume_failed: bool = False
    # It waits because of a volume of somebody else.
    volume_not_owned: str = ""
    # The revision on which it was Ready, or proved itself since.
    ready_revision: str = ""
    run: RunField | None = None
    # None where nobody asked to suspend it.
    suspension: Suspension | None = None
    # It is about to go on from memory, and does not run yet; since when its instance is there.
    resuming: bool = False
    instance_created: float = 0.0
    # How often its memory could not be saved when it was to be taken, and why it never can be.
    save_failure: SaveFailure | None = None
    unsavable: str = ""
    # Kept beside the replicas, in this state.
    standby: str = ""

    @property
    def in_flight(self) -> bool:
        """Created, updated or deleted, and not yet Running, halted or gone: what the burst counts. One that fails again and again
        waits by itself, and must not keep the others from their turn."""
        if self.deleting or self.restarting or self.being_saved:
            return True
        if self.off:
            return not self.halted
        return not self.running and not self.is_failing

    @property
    def being_saved(self) -> bool:
        """Its memory is, or is about to be."""
        return self.suspension is not None and not self.halted and not self.suspension.problem

    @property
    def is_asleep(self) -> bool:
        """Suspended, and it is known what came of its memory."""
        return self.suspension is not None and self.halted and self.suspension.holds

    @property
    def has_memory(self) -> bool:
        return self.is_asleep and self.suspension is not None and self.suspension.reason == reasons.MEMORY_SAVED

    @property
    def is_failing(self) -> bool:
        return self.failures > 0 or self.volume_failed


def member_of(
    pool: str, machine: VirtualMachine, instance: VirtualMachineInstance | None, memory: MemoryState | None = None
) -> Member:
    """`memory`: what its own claim holds of its guest."""
    own = instance if instance is not None and instance.controller_uid == machine.uid else None
    alive = own if own is not None and phase_of(own) not in FINISHED else None
    want = wanted(machine, own, memory)
    off = want in ("leave", "stop") and (alive is None or want == "stop")
    going = alive is not None and (alive.being_deleted or want in ("replace", "stop"))
    ready = find(alive.status.conditions if alive is not None and alive.status else None, reasons.READY)
    is_ready = ready is not None and ready.status == "True" and not going
    failure = machine.status.start_failure if machine.status else None
    reason = (machine.status.reason if machine.status else None) or ""
    status = alive.status if alive is not None else None
    return Member(
        name=machine.name,
        uid=machine.uid,
        resource_version=machine.metadata.resource_version or "",
        number=number_of(pool, machine.name),
        created=_seconds(machine.metadata.creation_timestamp),
        labels=machine.labels,
        scale_in=machine.annotations.get(labels.SCALE_IN, ""),
        # Of that very machine: one that was made from a copy is not meant.
        remove_requested=machine.annotations.get(labels.REMOVE_REQUEST) == machine.uid,
        update_requested=machine.annotations.get(labels.UPDATE_REQUEST, ""),
        deleting=machine.being_deleted,
        revision=machine.labels.get(labels.POOL_REVISION, ""),
        instance_revision=alive.labels.get(labels.POOL_REVISION, "") if alive is not None else "",
        updated=_moment_of(machine.annotations.get(labels.POOL_UPDATED, "")),
        instance_uid=alive.uid if alive is not None else "",
        updated_in_place=machine.annotations.get(labels.UPDATED_IN_PLACE, ""),
        restarting=alive is not None and want == "replace",
        ending=alive is not None and alive.being_deleted,
        restart_request=machine.annotations.get(labels.RESTART_REQUEST, ""),
        reprovision=_without_postfix(machine.annotations.get(labels.REPROVISION, ""), number_of(pool, machine.name)),
        node=(status.node_name if status is not None else None) or "",
        off=off,
        halted=off and alive is None,
        ready=is_ready,
        ready_since=_seconds(ready.last_transition_time) if ready is not None and is_ready else 0.0,
        last_ready=_last_ready(machine, own, is_ready=is_ready),
        crashed=fails_by_itself(failure),
        running=alive is not None and phase_of(alive) == "Running" and not alive.being_deleted,
        paused=_holds(status, reasons.PAUSED) and not _starts_paused(own),
        migrating=status is not None and status.migration_state is not None and not status.migration_state.completed,
        waits_to_retry=alive is None and not off and failure is not None and failure.retry_after_timestamp is not None,
        failures=(failure.consecutive_fail_count or 0) if failure is not None else 0,
        failing_since=_seconds(failure.first_failure_timestamp) if failure is not None else 0.0,
        volume_failed=reason == reasons.DATA_VOLUME_FAILED,
        volume_not_owned=((machine.status.message if machine.status else None) or "") if reason == reasons.VOLUME_NOT_OWNED else "",
        ready_revision=(machine.status.ready_revision if machine.status else None) or "",
        run=_run_field(machine),
        suspension=_suspension(machine) if machine.spec.suspended else None,
        resuming=_is_resuming(machine, alive, memory),
        instance_created=_seconds(alive.metadata.creation_timestamp) if alive is not None else 0.0,
        save_failure=save_failure_of(machine.annotations.get(labels.SAVE_FAILED, "")),
        unsavable=why_never(alive.spec) if alive is not None else "",
        standby=machine.labels.get(labels.STANDBY, ""),
    )


def _is_resuming(machine: VirtualMachine, alive: VirtualMachineInstance | None, memory: MemoryState | None) -> bool:
    """Also one that its pool has made for it, and that has not taken its memory back yet."""
    if machine.spec.suspended or machine.being_deleted:
        return False
    if alive is not None:
        return labels.RESUME_FROM in alive.annotations and phase_of(alive) != "Running"
    return memory in ("Saved", "Resuming") or was_kept(machine)


def _suspension(machine: VirtualMachine) -> Suspension:
    told = find(machine.status.conditions if machine.status else None, reasons.SUSPENDED)
    by_pool = machine.annotations.get(labels.SUSPENDED_BY, "") == machine.controller_uid
    if told is None:
        return Suspension(by_pool)
    return Suspension(by_pool, told.status == "True", told.reason or "", told.message or "")


def _last_ready(machine: VirtualMachine, instance: VirtualMachineInstance | None, *, is_ready: bool) -> ReadyPeriod | None:
    status = machine.status
    own = find(status.conditions if status else None, reasons.READY)
    if instance is not None and not is_ready and own is not None and own.status == "True":
        return ReadyPeriod(instance.labels.get(labels.POOL_REVISION, ""), _seconds(own.last_transition_time))
    last = status.last_ready if status else None
    return ReadyPeriod(last.revision or "", _seconds(last.since), _seconds(last.until)) if last is not None else None


def _without_postfix(names: str, number: int | None) -> tuple[str, ...]:
    """A list of DataVolumes as their template calls them."""
    postfix = f"-{number}"
    return tuple(name.removesuffix(postfix) for name in names.split(",") if name.endswith(postfix))


def _run_field(machine: VirtualMachine) -> RunField | None:
    if machine.spec.run_strategy is not None:
        return RunField("runStrategy", run_strategy(machine))
    return RunField("running", machine.spec.running) if machine.spec.running is not None else None


def _holds(status: VirtualMachineInstanceStatus | None, kind: str) -> bool:
    found = find(status.conditions if status is not None else None, kind)
    return found is not None and found.status == "True"


def _starts_paused(instance: VirtualMachineInstance | None) -> bool:
    """By its template, and not by a person: another template must reach it."""
    return instance is not None and instance.spec.start_strategy == "Paused"


def _seconds(time: datetime.datetime | None) -> float:
    return time.timestamp() if time is not None else 0.0


def _moment_of(text: str) -> float:
    """0 for what is no time: then it was long ago."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        return 0.0
