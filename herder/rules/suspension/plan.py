"""The plan for the suspension of one machine: its memory is saved, kept, and thrown away once it was used."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api import labels, reasons
from herder.api.core import Node, PersistentVolumeClaim, Pod
from herder.api.guest import GuestReport, report_of
from herder.api.imports import import_report_of
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.memory import SavedMemory, memory_claim
from herder.api.quantity import BINARY_SI, of
from herder.rules.machines.failures import wait_after
from herder.rules.machines.preserved import is_preserved
from herder.rules.machines.wanted import FINISHED, phase_of, run_strategy
from herder.rules.plans import Delete, Document, Event, condition, find, moment
from herder.rules.suspension.claim import claim_document, latest, saver_pod, size_for
from herder.rules.suspension.memory import Memory, memory_in
from herder.rules.suspension.savable import why_changed, why_never, why_not_there
from herder.rules.volumes.importer import attempt_of, ended_at, requested

NO_CLASS = "there is no StorageClass of ours to save its memory with: `herder install` makes herder-local"
# Seconds until a failed saver is looked at again, at least.
SPACING = 1.0
# An annotation may be longer than a condition's message.
MOST_SAID = 1024


class SuspensionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    machine: VirtualMachine
    # As it is stored: what is made for it is made from this.
    document: Document
    # Of its template as it is now.
    template_hash: str
    # Its own; None where there is none.
    instance: VirtualMachineInstance | None = None
    # Where the guest is, or was last, and the node of that.
    launcher: Pod | None = None
    node: Node | None = None
    # Of the name that its memory goes to, whoever made it.
    claim: PersistentVolumeClaim | None = None
    # Of this instance.
    savers: tuple[Pod, ...] = ()
    migrates: bool = False
    storage_class: str = ""
    # uids of the claims of its disks, by their names.
    disks: Mapping[str, str] = {}


class SuspensionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Carried out in the order of its fields; each step is safe to repeat."""

    create_claim: Document | None = None
    # What the claim is to say, and only over what was seen.
    record: SavedMemory | None = None
    create_saver: Document | None = None
    delete_savers: tuple[Delete, ...] = ()
    delete_claim: Delete | None = None
    # Of the machine, under a name of our own; None takes it away.
    condition: Document | None = None
    events: tuple[Event, ...] = ()
    next_look: float | None = None


def plan_suspension(snapshot: SuspensionSnapshot, now: float) -> SuspensionPlan:
    machine, instance = snapshot.machine, snapshot.instance
    if machine.being_deleted:
        return SuspensionPlan()
    wants = bool(machine.spec.suspended)
    if wants and snapshot.claim is not None and is_preserved(machine, snapshot.claim):
        return _told(snapshot, False, reasons.SAVING_MEMORY, f"takes back {snapshot.claim.name}, which its pool had kept")
    if wants and snapshot.claim is not None and snapshot.claim.controller_uid != machine.uid:
        why = f"PersistentVolumeClaim {snapshot.claim.name}, which its memory would go to, exists and belongs to someone else"
        return _told(snapshot, False, reasons.CLAIM_NOT_OWNED, why, warns=True)
    memory = memory_in(machine.uid, snapshot.claim)
    if memory is not None and memory.record.state == "Saving" and (saved := _just_saved(snapshot, memory, now)) is not None:
        return saved
    alive = instance is not None and not instance.being_deleted and phase_of(instance) not in FINISHED
    if wants:
        return _suspend(snapshot, instance, memory, now) if alive and instance is not None else _asleep(snapshot, memory)
    return _awake(snapshot, memory, alive)


def _just_saved(snapshot: SuspensionSnapshot, memory: Memory, now: float) -> SuspensionPlan | None:
    """All of it is in the claim, and the guest is over where it ran: from now on it is what the machine goes on from."""
    saver, record = latest(snapshot.savers), memory.record
    report = import_report_of(saver) if saver is not None and saver.status.phase == "Succeeded" else None
    mine = snapshot.launcher is not None and snapshot.launcher.uid == record.pod
    if report is None or report.saved is None or not mine:
        return None
    whole = msgspec.structs.replace(record, state="Saved", saved=report.saved, saved_at=moment(float(int(now))))
    told = Event("Normal", reasons.MEMORY_SAVED, f"{_amount(report.saved.bytes)} of memory are in claim {memory.claim.name}")
    return SuspensionPlan(
        record=whole, events=(told,), condition=_shown(snapshot, False, reasons.SAVING_MEMORY, "its memory is saved")
    )


# --- to be suspended, and there is an instance ------------------------------------------------------------------------------------


def _suspend(snapshot: SuspensionSnapshot, instance: VirtualMachineInstance, memory: Memory | None, now: float) -> SuspensionPlan:
    launcher = snapshot.launcher
    report = report_of(launcher) if launcher is not None else None
    if report is not None and report.state == "Saved":
        return _told(snapshot, False, reasons.SAVING_MEMORY, "its memory is saved")
    if phase_of(instance) != "Running" or launcher is None or report is None or report.state not in ("Running", "Paused"):
        return _told(snapshot, False, reasons.WAITING_FOR_GUEST, "its memory is saved once the guest runs")
    if why := _why_not(snapshot, instance):
        return _told(snapshot, False, reasons.CANNOT_SAVE_MEMORY, f"it goes on: {why}", warns=True)
    if snapshot.migrates:
        return _told(snapshot, False, reasons.WAITING_FOR_MIGRATION, "its memory is saved once it has arrived where it is moved to")
    if snapshot.claim is not None and snapshot.claim.being_deleted:
        return _told(snapshot, False, reasons.SAVING_MEMORY, f"waits until the old claim {snapshot.claim.name} is gone")
    if snapshot.claim is not None and (have := requested(snapshot.claim)) < (need := size_for(instance)):
        # Of a machine that had less memory; or made by somebody who would have more room than the claim says.
        why = f"claim {snapshot.claim.name} has {_amount(have)} and its memory takes {_amount(need)}: it is made anew"
        gone = Delete(snapshot.claim.name, snapshot.claim.uid)
        return SuspensionPlan(delete_claim=gone, condition=_shown(snapshot, False, reasons.SAVING_MEMORY, why))
    fresh = _begun(snapshot, instance, launcher)
    if snapshot.claim is None:
        storage = snapshot.node.labels.get(labels.STORAGE, "") if snapshot.node is not None else ""
        made = claim_document(snapshot.document, instance, fresh, snapshot.storage_class, storage)
        return SuspensionPlan(
            create_claim=made, condition=_shown(snapshot, False, reasons.SAVING_MEMORY, "a claim for its memory is made")
        )
    if memory is None or memory.record.pod != launcher.uid or memory.record.state != "Saving":
        # Of a guest that was before: whatever it says, this one has used its disks since.
        return SuspensionPlan(
            record=fresh, condition=_shown(snapshot, False, reasons.SAVING_MEMORY, "its memory is about to be saved")
        )
    return _saving(snapshot, instance, launcher, memory, now)


def _why_not(snapshot: SuspensionSnapshot, instance: VirtualMachineInstance) -> str:
    if not snapshot.storage_class:
        return NO_CLASS
    there = why_not_there(snapshot.node) if snapshot.node is not None else "its node is gone"
    return why_never(instance.spec) or there or why_changed(instance, snapshot.template_hash)


def _begun(snapshot: SuspensionSnapshot, instance: VirtualMachineInstance, launcher: Pod) -> SavedMemory:
    return SavedMemory(
        state="Saving",
        machine=snapshot.machine.uid,
        instance=instance.uid,
        pod=launcher.uid,
        revision=instance.annotations.get(labels.TEMPLATE_HASH, ""),
        pool_revision=instance.labels.get(labels.POOL_REVISION, ""),
        disks=dict(snapshot.disks),
    )


def _saving(
    snapshot: SuspensionSnapshot, instance: VirtualMachineInstance, launcher: Pod, memory: Memory, now: float
) -> SuspensionPlan:
    claim, saver = memory.claim, latest(snapshot.savers)
    if claim.status.phase != "Bound" or not claim.spec.volume_name:
        return _told(snapshot, False, reasons.SAVING_MEMORY, f"waits for claim {claim.name} to get its volume")
    if saver is None:
        made = saver_pod(instance, launcher, claim, 0)
        return SuspensionPlan(
            create_saver=made, condition=_shown(snapshot, False, reasons.SAVING_MEMORY, "its memory is about to be saved")
        )
    if saver.being_deleted:
        return _told(snapshot, False, reasons.SAVING_MEMORY, "an earlier try to save its memory is about to end")
    report = import_report_of(saver)
    if saver.status.phase != "Failed":
        done = f"{report.percent} of its memory are saved" if report is not None and report.total else ""
        return _told(
            snapshot,
            False,
            reasons.SAVING_MEMORY,
            (report.message if report is not None else "") or done or "its memory is being saved",
        )
    why = (report.message if report is not None else "") or saver.status.message or f"pod {saver.name} failed"
    attempt = attempt_of(saver) + 1
    left = ended_at(saver) + max(SPACING, wait_after(attempt)) - now
    if left > 0:
        told = _told(snapshot, False, reasons.SAVE_FAILED, f"{why}; the guest goes on, and it is tried again", warns=True)
        return msgspec.structs.replace(told, next_look=left)
    earlier = tuple(Delete(one.name, one.uid) for one in snapshot.savers if not one.being_deleted)
    return SuspensionPlan(
        create_saver=saver_pod(instance, launcher, claim, attempt),
        delete_savers=earlier,
        condition=_shown(snapshot, False, reasons.SAVING_MEMORY, "its memory is about to be saved once more"),
    )


# --- suspended --------------------------------------------------------------------------------------------------------------------


def _asleep(snapshot: SuspensionSnapshot, memory: Memory | None) -> SuspensionPlan:
    if snapshot.instance is not None:
        # It ends, or has ended: its controller sees to that, and what was saved is looked at above.
        waits = _told(snapshot, False, reasons.SAVING_MEMORY, "its instance is about to end")
        return waits if memory is None or memory.record.state != "Saving" or _may_be_saved(snapshot) else _dropped(snapshot, memory)
    if memory is not None and memory.record.state == "Used":
        return _cleared(memory)
    if memory is None:
        return _told(snapshot, True, reasons.NOTHING_SAVED, "no memory was saved: it boots from its disks when it is resumed")
    if memory.record.state != "Saved":
        return _dropped(snapshot, memory)
    if memory.record.revision and memory.record.revision != snapshot.template_hash:
        why = "its template has changed since its memory was saved: it would boot from its disks; take the change back to keep it"
        return _told(snapshot, True, reasons.MEMORY_SAVED, why)
    size = _amount(memory.record.saved.bytes) if memory.record.saved is not None else "its memory"
    return _told(snapshot, True, reasons.MEMORY_SAVED, f"{size} of memory are in claim {memory.claim.name}")


def _may_be_saved(snapshot: SuspensionSnapshot) -> bool:
    """Its saver has not said yet how it ended."""
    saver = latest(snapshot.savers)
    return saver is not None and saver.status.phase not in FINISHED


def _cleared(memory: Memory) -> SuspensionPlan:
    """Nothing is left of it, and nobody holds it any more."""
    return SuspensionPlan(delete_claim=Delete(memory.claim.name, memory.claim.uid))


def _dropped(snapshot: SuspensionSnapshot, memory: Memory) -> SuspensionPlan:
    """Not whole, or given to somebody who is gone: nobody may go on from it."""
    why = "the guest ended before its memory was saved" if memory.record.state == "Saving" else "its memory may have been used"
    said = f"{why}: it boots from its disks when it is resumed"
    return SuspensionPlan(
        delete_claim=Delete(memory.claim.name, memory.claim.uid),
        events=(Event("Warning", reasons.MEMORY_DROPPED, said),),
        condition=_shown(snapshot, snapshot.instance is None, reasons.NOTHING_SAVED, said),
    )


# --- not to be suspended ----------------------------------------------------------------------------------------------------------


def _awake(snapshot: SuspensionSnapshot, memory: Memory | None, alive: bool) -> SuspensionPlan:
    if alive:
        return _runs(snapshot, memory)
    if memory is None:
        return SuspensionPlan()
    if memory.record.state == "Used":
        return _cleared(memory) if snapshot.instance is None else SuspensionPlan()
    if memory.record.state == "Saving":
        if snapshot.instance is not None and _may_be_saved(snapshot):
            return SuspensionPlan()
        return msgspec.structs.replace(_dropped(snapshot, memory), condition=None)
    if run_strategy(snapshot.machine) == "Halted" and snapshot.instance is None:
        told = Event("Normal", reasons.MEMORY_DROPPED, "it was stopped while it was suspended: its memory is thrown away")
        return SuspensionPlan(delete_claim=Delete(memory.claim.name, memory.claim.uid), events=(told,))
    # Whoever starts it goes on from it.
    return SuspensionPlan()


def _runs(snapshot: SuspensionSnapshot, memory: Memory | None) -> SuspensionPlan:
    launcher, instance = snapshot.launcher, snapshot.instance
    report = report_of(launcher) if launcher is not None else None
    shown = _not_resumed(snapshot)
    if memory is None or instance is None:
        return SuspensionPlan(condition=shown)
    if memory.record.state == "Saving":
        return _called_off(snapshot, memory, launcher, report)
    if phase_of(instance) != "Running":
        return SuspensionPlan()
    if memory.record.state == "Used":
        return SuspensionPlan(condition=shown)
    # Used, or passed over: from now on it would be somebody that never was. The claim goes with the pod that holds it.
    told = _resumed(report, memory.record)
    used = msgspec.structs.replace(memory.record, state="Used")
    return SuspensionPlan(record=used, condition=shown, events=(told,) if told else ())


def _called_off(snapshot: SuspensionSnapshot, memory: Memory, launcher: Pod | None, report: GuestReport | None) -> SuspensionPlan:
    """First nobody saves it any more, and its node lets it go on; then the claim goes."""
    savers = tuple(Delete(one.name, one.uid) for one in snapshot.savers if not one.being_deleted)
    if snapshot.savers:
        return SuspensionPlan(delete_savers=savers)
    if launcher is not None and launcher.uid == memory.record.pod and report is not None and report.reason == reasons.SAVING_MEMORY:
        return SuspensionPlan()
    return SuspensionPlan(delete_claim=Delete(memory.claim.name, memory.claim.uid))


def _resumed(report: GuestReport | None, record: SavedMemory) -> Event | None:
    if report is None or not record.resumed_by:
        return None
    if report.resumed:
        return Event("Normal", reasons.RESUMED, "it goes on from the memory that was saved")
    return Event("Warning", reasons.NOT_RESUMED, f"it booted from its disks: {report.not_resumed_because or 'nobody says why'}")


def _not_resumed(snapshot: SuspensionSnapshot) -> Document | None:
    """As found out by its node, by who made its pod, or by who made the instance."""
    launcher, instance = snapshot.launcher, snapshot.instance
    report = report_of(launcher) if launcher is not None else None
    said = [report.not_resumed_because if report is not None else ""]
    said += [one.annotations.get(labels.NOT_RESUMED, "") for one in (launcher, instance) if one is not None]
    why = next((one for one in said if one), "")
    return _shown(snapshot, False, reasons.NOT_RESUMED, f"it boots from its disks: {why[:MOST_SAID]}") if why else None


# --- what is said -----------------------------------------------------------------------------------------------------------------


def _told(snapshot: SuspensionSnapshot, holds: bool, reason: str, message: str, *, warns: bool = False) -> SuspensionPlan:
    """With an event where it is news."""
    known = find(snapshot.machine.status.conditions if snapshot.machine.status else None, reasons.SUSPENDED)
    news = warns and (known is None or known.reason != reason)
    return SuspensionPlan(
        condition=_shown(snapshot, holds, reason, message), events=(Event("Warning", reason, message),) if news else ()
    )


def _shown(snapshot: SuspensionSnapshot, holds: bool, reason: str, message: str) -> Document:
    return condition(reasons.SUSPENDED, holds, reason, message)


def _amount(size: int) -> str:
    return str(of(-(-size // (1 << 20)) << 20, BINARY_SI))


def claim_of(machine: VirtualMachine) -> str:
    return memory_claim(machine.name)
