"""Whether a machine may go on from memory that was saved: once, as what it was, and only if nobody ran in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from herder.api import labels
from herder.api.core import Node, PersistentVolumeClaim
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.memory import MemoryState, SavedMemory, memory_of
from herder.rules.migratability.moving import nobody_has


class Memory(msgspec.Struct, frozen=True):
    """The claim, and what it says."""

    claim: PersistentVolumeClaim
    record: SavedMemory


def memory_in(machine_uid: str, claim: PersistentVolumeClaim | None) -> Memory | None:
    """What the machine's own claim holds; None where there is none, or it is somebody else's, or it is on its way out."""
    if claim is None or claim.being_deleted or claim.controller_uid != machine_uid:
        return None
    record = memory_of(claim)
    return Memory(claim, record) if record is not None else None


def state_in(machine_uid: str, claim: PersistentVolumeClaim | None) -> MemoryState | None:
    """How far the machine's own memory is; None where it has none."""
    memory = memory_in(machine_uid, claim)
    return memory.record.state if memory is not None else None


def why_unusable(machine: VirtualMachine, template_hash: str, memory: Memory) -> str:
    """Why its next instance boots from its disks; empty where it goes on from its memory."""
    record = memory.record
    last = machine.status.last_instance_uid if machine.status else None
    if record.state == "Saving":
        return "the memory was not saved to its end"
    if record.state == "Resuming":
        return "an instance that was to go on from it has ended: the memory may have been used"
    if record.machine != machine.uid:
        return "the memory is of another machine of this name"
    if last is not None and last != record.instance:
        return "another instance has used its disks since the memory was saved"
    if record.revision and record.revision != template_hash:
        return "its template has changed since the memory was saved"
    return ""


def why_unfit(instance: VirtualMachineInstance, memory: Memory | None, disks: Mapping[str, str], nodes: Iterable[Node]) -> str:
    """The same of an instance that was made to go on from it, right before it gets its pod. `disks` are uids of claims by name."""
    if memory is None or memory.claim.uid != instance.annotations.get(labels.RESUME_FROM):
        return "the claim with the memory is gone"
    record = memory.record
    if (
        record.state in ("Saving", "Used")
        or record.saved is None
        or (record.state == "Resuming" and record.resumed_by != instance.uid)
    ):
        return "the memory is not whole, or was used before"
    changed = sorted(name for name in record.disks.keys() | disks.keys() if record.disks.get(name) != disks.get(name))
    if changed:
        return f"the disk of claim {', '.join(changed)} is another one than when the memory was saved"
    started, known = record.saved.started, tuple(nodes)
    such = [node for node in known if _runs_such(node, started.runtime)]
    if known and not such:
        return f"no node runs guests with {started.runtime[:63]}, as it was run"
    lacking = nobody_has(started.cpu, such) if started.cpu else ""
    return f"no node has the CPU that it was started with: {lacking}" if lacking else ""


def _runs_such(node: Node, runtime: str) -> bool:
    return not runtime or node.labels.get(labels.RUNTIME) == runtime


def resumed_by(memory: Memory, instance: VirtualMachineInstance) -> SavedMemory:
    """Durable before there is a pod that could use it: from then on it is this instance's, and nobody else's."""
    return msgspec.structs.replace(memory.record, state="Resuming", resumed_by=instance.uid)
