"""The claim that the memory of a machine is saved into, and the pod that does it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from herder.api import labels, registry
from herder.api.core import PersistentVolumeClaim, Pod, StorageClass
from herder.api.imports import ImportDefinition
from herder.api.kinds import VirtualMachineInstance
from herder.api.memory import SavedMemory, memory_claim
from herder.api.quantity import BINARY_SI, of
from herder.api.reading import part, text
from herder.rules.instances.launcher import guest_memory
from herder.rules.machines.children import owner_reference
from herder.rules.plans import Document, plain
from herder.rules.volumes.importer import CONTAINER, IMAGE, TOLERATIONS, attempt_of, requested

MEBIBYTE = 1 << 20
# Beside its memory: the state of its devices, the screen's own memory, and a few bytes for each page.
BESIDE = 96 * MEBIBYTE
PER_PAGE_SHARE = 64
GRACE = 5


def size_for(instance: VirtualMachineInstance) -> int:
    """Whole mebibytes."""
    memory = guest_memory(instance.spec).value()
    return -(-(memory + memory // PER_PAGE_SHARE + BESIDE) // MEBIBYTE) * MEBIBYTE


def class_for(classes: Iterable[StorageClass]) -> str:
    """One of ours: nodes of ours save into no other. Empty where there is none."""
    ours = sorted(one.name for one in classes if one.provisioner == labels.PROVISIONER)
    return labels.STORAGE_CLASS if labels.STORAGE_CLASS in ours else ours[0] if ours else ""


def claim_document(
    machine: Document, instance: VirtualMachineInstance, memory: SavedMemory, storage_class: str, storage: str
) -> Document:
    """`storage` is where the guest's node can write to."""
    own = part(machine, "metadata")
    return {
        "metadata": {
            "name": memory_claim(text(own, "name")),
            "namespace": text(own, "namespace"),
            "labels": {labels.MACHINE_NAME: text(own, "name")},
            "annotations": {labels.MEMORY: record_text(memory), **({labels.STORAGE: storage} if storage else {})},
            "ownerReferences": [owner_reference(machine)],
        },
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": str(of(size_for(instance), BINARY_SI))}},
        },
    }


def record_text(memory: SavedMemory) -> str:
    return msgspec.json.encode(plain(memory)).decode()


def saver_name(instance: VirtualMachineInstance, attempt: int) -> str:
    """Follows from the instance: whoever makes it twice makes the same one."""
    return f"save-{instance.uid}-{attempt}"


def saver_pod(instance: VirtualMachineInstance, launcher: Pod, claim: PersistentVolumeClaim, attempt: int) -> Document:
    """Bound to the guest's node, it asks no scheduler: the guest may be on a node that takes nobody else."""
    definition = ImportDefinition(action="save", volume=claim.spec.volume_name, capacity=requested(claim), guest=launcher.uid)
    return {
        "metadata": {
            "name": saver_name(instance, attempt),
            "namespace": instance.namespace,
            "labels": {labels.IMPORTER: claim.uid, labels.IMPORT_ATTEMPT: str(attempt), labels.APP: CONTAINER},
            "annotations": {labels.IMPORT: msgspec.json.encode(plain(definition)).decode()},
            "ownerReferences": [_owner(instance)],
        },
        "spec": {
            "nodeName": launcher.spec.node_name,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE,
            "tolerations": [*TOLERATIONS, {"operator": "Exists"}],
            # Without requests: it takes next to nothing, and must not be refused by a node that is full of guests.
            "containers": [{"name": CONTAINER, "image": IMAGE}],
            "volumes": [{"name": "memory", "persistentVolumeClaim": {"claimName": claim.name}}],
        },
    }


def _owner(instance: VirtualMachineInstance) -> Document:
    kind = {"apiVersion": registry.INSTANCE.api_version, "kind": registry.INSTANCE.kind}
    return {**kind, "name": instance.name, "uid": instance.uid, "controller": True, "blockOwnerDeletion": False}


def latest(savers: Iterable[Pod]) -> Pod | None:
    return max(savers, key=attempt_of, default=None)
