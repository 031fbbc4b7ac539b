"""The plan for one VirtualMachine, from what there is."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api import labels, reasons
from herder.api.core import PersistentVolumeClaim
from herder.api.kinds import DataVolume, VirtualMachine, VirtualMachineInstance
from herder.api.kinds.machine import StartFailure, VirtualMachineStatus
from herder.api.memory import memory_of
from herder.api.reading import part, text
from herder.rules.machines import children, failures
from herder.rules.machines.inherited import UNKNOWN, Origin, instance_patch, origin_of
from herder.rules.machines.last_ready import last_ready
from herder.rules.machines.preserved import TakeBack, is_preserved, take_back, take_memory_back, was_kept
from herder.rules.machines.ready_revision import look_when_proven, ready_revision
from herder.rules.machines.reprovisioned import is_reprovisioned, to_reprovision
from herder.rules.machines.shown import Shown, conditions, shown
from herder.rules.machines.wanted import FINISHED, Wanted, phase_of, run_strategy, start_requested, wanted
from herder.rules.plans import Delete, Document, Event, moment, since, text_of, without_nothing
from herder.rules.suspension.memory import Memory, why_unusable

VOLUME_NOT_OWNED = "{name} exists and belongs to someone else; rename the template, or remove that DataVolume"
INSTANCE_NOT_OWNED = "a VirtualMachineInstance of this name exists and belongs to someone else; it has to go first"


class MachineSnapshot(msgspec.Struct, frozen=True):
    """What the plan is made from. The document is the machine as it is stored: children are made from it, not from the view."""

    machine: VirtualMachine
    document: Document
    # Whoever owns them: what has our name and is not ours is in the way.
    instance: VirtualMachineInstance | None
    data_volumes: Mapping[str, DataVolume]
    # What its own claim holds of its memory; and the claim of that name, whoever owns it.
    memory: Memory | None = None
    memory_claim: PersistentVolumeClaim | None = None


class MachinePlan(msgspec.Struct, frozen=True):
    # Those that its pool kept for it. Nothing is started before they are its own again.
    take_back: tuple[TakeBack, ...] = ()
    take_memory_back: TakeBack | None = None
    create_data_volumes: tuple[Document, ...] = ()
    delete_data_volumes: tuple[Delete, ...] = ()
    # Memory that nobody may go on from any more: gone before there is an instance that uses the disks without it.
    drop_memory: Delete | None = None
    create_instance: Document | None = None
    delete_instance: Delete | None = None
    # All that was asked to be made again is: nobody asks for it any more.
    reprovisioned: bool = False
    # What of the template reaches the instance without a restart, as a merge patch.
    update_instance: Document | None = None
    status: Document = msgspec.field(default_factory=dict)
    events: tuple[Event, ...] = ()
    next_look: float | None = None


def plan_machine(snapshot: MachineSnapshot, now: float) -> MachinePlan:
    machine = snapshot.machine
    foreign = snapshot.instance is not None and snapshot.instance.controller_uid != machine.uid
    instance = None if foreign else snapshot.instance
    if machine.being_deleted:
        return _plan(snapshot, instance, None, "leave", now, Shown(reasons.TERMINATING))
    halted = instance is None and run_strategy(machine) == "Halted"
    # Who is switched off fails no more, and has a fresh start when it is switched on again.
    failure = None if halted else failures.failure_after(machine, instance, now)
    problem = _in_the_way(snapshot, foreign)
    if problem is not None:
        return _plan(snapshot, instance, failure, "leave", now, problem)
    state = snapshot.memory.record.state if snapshot.memory is not None else None
    return _plan(snapshot, instance, failure, wanted(machine, instance, state), now)


def _plan(
    snapshot: MachineSnapshot,
    instance: VirtualMachineInstance | None,
    failure: StartFailure | None,
    want: Wanted,
    now: float,
    problem: Shown | None = None,
) -> MachinePlan:
    retry = failures.wait_until(failure)
    asked = start_requested(snapshot.machine) is not None or _ended_by_wish(instance)
    waits = want in ("start", "replace") and retry is not None and retry > moment(now) and not asked
    missing = () if problem else _missing_volumes(snapshot)
    kept = () if problem else _preserved_volumes(snapshot)
    stale = () if snapshot.machine.being_deleted else to_reprovision(snapshot.machine, snapshot.data_volumes)
    kept_memory = None if problem else _preserved_memory(snapshot)
    make = want == "start" and not waits and problem is None and not kept and kept_memory is None and not stale
    memory = snapshot.memory if make and snapshot.memory is not None and snapshot.memory.record.state != "Used" else None
    unusable = _why_unusable(snapshot, memory) if make else ""
    end = want in ("stop", "replace") and instance is not None and not instance.being_deleted
    told = snapshot.machine if failure is None else _with_failure(snapshot.machine, failure)
    word = problem or shown(
        told,
        instance,
        tuple(snapshot.data_volumes.values()),
        starts=want in ("start", "replace"),
        waits=text_of(retry) if waits and retry else "",
        saved=kept_memory is not None or (snapshot.memory is not None and snapshot.memory.record.state == "Saved"),
    )
    origin = UNKNOWN if instance is None or phase_of(instance) in FINISHED else origin_of(snapshot.document, instance)
    status = _status(snapshot, instance, failure, word, now, origin)
    return MachinePlan(
        take_back=kept,
        take_memory_back=kept_memory,
        # Nothing of the guest may be left that has them open.
        delete_data_volumes=tuple(Delete(one.name, one.uid) for one in stale if instance is None and not one.being_deleted),
        create_data_volumes=missing,
        drop_memory=Delete(memory.claim.name, memory.claim.uid) if memory is not None and unusable else None,
        create_instance=children.instance_of(snapshot.document, _resumed_from(memory, unusable), unusable) if make else None,
        delete_instance=Delete(instance.name, instance.uid) if end and instance else None,
        reprovisioned=is_reprovisioned(snapshot.machine, snapshot.data_volumes),
        update_instance=_update(snapshot, instance, origin) if want == "leave" else None,
        status=status,
        events=(
            *_taken_back((*kept, *((kept_memory,) if kept_memory is not None else ()))),
            *_wiped(stale, instance),
            *_crash(snapshot, instance, failure, now),
            *((Event("Warning", reasons.NOT_RESUMED, f"it boots from its disks: {unusable}"),) if unusable else ()),
            *_events(snapshot, instance, make, end, want),
        ),
        next_look=_soonest(
            max(0.0, retry.timestamp() - now) if waits and retry else _look_when_well(instance, failure, now),
            look_when_proven(snapshot.machine, instance, ready=status["ready"], now=now),
        ),
    )


def _why_unusable(snapshot: MachineSnapshot, memory: Memory | None) -> str:
    """Why it boots although it was to go on from memory; empty where it goes on, or never was to."""
    if memory is not None:
        return why_unusable(snapshot.machine, children.template_hash(snapshot.document), memory)
    return "the claim with the memory that its pool kept for it is gone" if was_kept(snapshot.machine) else ""


def _preserved_memory(snapshot: MachineSnapshot) -> TakeBack | None:
    """Of a machine that never ran: one that did has used the disks without it."""
    claim = snapshot.memory_claim
    if claim is None or snapshot.machine.being_deleted or not is_preserved(snapshot.machine, claim):
        return None
    record = memory_of(claim)
    return take_memory_back(snapshot.document, claim, record) if record is not None else None


def _resumed_from(memory: Memory | None, unusable: str) -> str:
    return memory.claim.uid if memory is not None and not unusable else ""


def _update(snapshot: MachineSnapshot, instance: VirtualMachineInstance | None, origin: Origin) -> Document | None:
    if instance is None or not _alive(instance) or snapshot.machine.being_deleted:
        return None
    return instance_patch(snapshot.document, instance, origin)


def _soonest(*looks: float | None) -> float | None:
    return min((look for look in looks if look is not None), default=None)


def _ended_by_wish(instance: VirtualMachineInstance | None) -> bool:
    """A running instance that is asked to be replaced is no failure: the next one need not wait. Nor who is asked to start."""
    return instance is not None and phase_of(instance) not in FINISHED


def _look_when_well(instance: VirtualMachineInstance | None, failure: StartFailure | None, now: float) -> float | None:
    """While an old failure is on record and the guest runs: once it has run well, the record goes."""
    if failure is None or instance is None or phase_of(instance) != "Running":
        return None
    return failures.WELL_AFTER.total_seconds()


def _in_the_way(snapshot: MachineSnapshot, foreign_instance: bool) -> Shown | None:
    if foreign_instance:
        return Shown(reasons.STOPPED, reasons.INSTANCE_NOT_OWNED, INSTANCE_NOT_OWNED)
    for wanted_volume in children.data_volumes_of(snapshot.document):
        name = text(part(wanted_volume, "metadata"), "name")
        found = snapshot.data_volumes.get(name)
        if found is not None and found.controller_uid != snapshot.machine.uid and not is_preserved(snapshot.machine, found):
            message = "DataVolume " + VOLUME_NOT_OWNED.format(name=name)
            return Shown(reasons.DATA_VOLUME_ERROR, reasons.VOLUME_NOT_OWNED, message)
    return None


def _missing_volumes(snapshot: MachineSnapshot) -> tuple[Document, ...]:
    if snapshot.machine.being_deleted:
        return ()
    wanted_volumes = children.data_volumes_of(snapshot.document)
    return tuple(one for one in wanted_volumes if text(part(one, "metadata"), "name") not in snapshot.data_volumes)


def _preserved_volumes(snapshot: MachineSnapshot) -> tuple[TakeBack, ...]:
    machine = snapshot.machine
    if machine.being_deleted:
        return ()
    kept = [volume for volume in snapshot.data_volumes.values() if is_preserved(machine, volume)]
    return tuple(take_back(snapshot.document, volume) for volume in kept)


def _taken_back(kept: tuple[TakeBack, ...]) -> tuple[Event, ...]:
    return tuple(
        Event("Normal", reasons.VOLUME_TAKEN_BACK, f"took back {one.kind} {one.name}, which its pool had kept") for one in kept
    )


def _wiped(stale: tuple[DataVolume, ...], instance: VirtualMachineInstance | None) -> tuple[Event, ...]:
    gone = [one.name for one in stale if instance is None and not one.being_deleted]
    return (
        (Event("Normal", reasons.VOLUME_REPROVISIONED, f"made again as its template says: DataVolume {', '.join(gone)}"),)
        if gone
        else ()
    )


def _crash(
    snapshot: MachineSnapshot, instance: VirtualMachineInstance | None, failure: StartFailure | None, now: float
) -> tuple[Event, ...]:
    if instance is None or failure is None:
        return ()
    event = failures.crashed_early(snapshot.machine, instance, failure, now)
    return (event,) if event is not None else ()


def _with_failure(machine: VirtualMachine, failure: StartFailure) -> VirtualMachine:
    """As it will be shown: the failure that was found just now is part of it."""
    status = machine.status or VirtualMachineStatus()
    return msgspec.structs.replace(machine, status=msgspec.structs.replace(status, start_failure=failure))


def _status(
    snapshot: MachineSnapshot,
    instance: VirtualMachineInstance | None,
    failure: StartFailure | None,
    word: Shown,
    now: float,
    origin: Origin,
) -> Document:
    machine = snapshot.machine
    old = machine.status
    found = conditions(machine, instance, word, restart_required=origin.restart_required)
    ready = any(one["type"] == reasons.READY and one["status"] == "True" for one in found)
    # A request counts as done once its instance is there, and not when it is merely about to be made.
    handled = machine.annotations.get(labels.START_REQUEST) if _alive(instance) else (old.observed_start_request if old else None)
    return without_nothing(
        {
            "observedGeneration": machine.metadata.generation,
            "created": instance is not None,
            "ready": ready,
            "printableStatus": word.word,
            "reason": word.reason or None,
            "message": word.message or None,
            "runStrategy": run_strategy(machine),
            "nodeName": None if word.word == reasons.STARTING else _node_of(instance),
            "conditions": since(found, old.conditions if old else None, now),
            "startFailure": failures.document_of(failure),
            "readyRevision": ready_revision(machine, instance, _own_volumes(snapshot), ready=ready, now=now),
            "lastReady": last_ready(machine, instance, ready=ready, now=now),
            "lastInstanceUID": instance.uid if instance else (old.last_instance_uid if old else None),
            "observedStartRequest": handled,
        }
    )


def _own_volumes(snapshot: MachineSnapshot) -> list[DataVolume]:
    return [one for one in snapshot.data_volumes.values() if one.controller_uid == snapshot.machine.uid]


def _node_of(instance: VirtualMachineInstance | None) -> str | None:
    return (instance.status.node_name if instance and instance.status else None) or None


def _alive(instance: VirtualMachineInstance | None) -> bool:
    return instance is not None and not instance.being_deleted and phase_of(instance) not in FINISHED


def _events(
    snapshot: MachineSnapshot, instance: VirtualMachineInstance | None, make: bool, end: bool, want: Wanted
) -> tuple[Event, ...]:
    name = snapshot.machine.name
    if make:
        asked = " as asked" if start_requested(snapshot.machine) else ""
        return (Event("Normal", reasons.SUCCESSFUL_CREATE, f"started{asked}: made VirtualMachineInstance {name}"),)
    if end and instance is not None:
        how = "to start it again" if want == "replace" else "to stop it"
        return (Event("Normal", reasons.SUCCESSFUL_DELETE, f"ended VirtualMachineInstance {name} {how}"),)
    return ()
