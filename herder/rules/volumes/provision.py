"""Which PersistentVolume a claim of our class gets, and where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from herder.api import labels, reasons
from herder.api.core import Node, PersistentVolume, PersistentVolumeClaim, StorageClass
from herder.api.storage import CONTENT_FINALIZER, PROVISIONED_BY, SELECTED_NODE, STORAGE_PARAMETER, VOLUME_ROOT, volume_name
from herder.rules.plans import Document, Event


class ClaimPlan(msgspec.Struct, frozen=True):
    create_volume: Document | None = None
    events: tuple[Event, ...] = ()


def is_ours(volume: PersistentVolume) -> bool:
    return volume.annotations.get(PROVISIONED_BY) == labels.PROVISIONER


def storage_of(volume: PersistentVolume) -> str:
    """Which nodes keep it."""
    return volume.labels.get(labels.STORAGE, "")


def wants_volume(claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> bool:
    spec = claim.spec
    if storage_class is None or storage_class.provisioner != labels.PROVISIONER:
        return False
    # A certain volume, or one by its labels: those are there already, or never.
    return not spec.volume_name and spec.selector is None and not claim.being_deleted


def plan_claim(
    claim: PersistentVolumeClaim, storage_class: StorageClass | None, volume: PersistentVolume | None, nodes: Iterable[Node]
) -> ClaimPlan:
    """`volume` is the one of the claim's own name, if there is one."""
    if volume is not None or storage_class is None or not wants_volume(claim, storage_class):
        return ClaimPlan()
    if claim.spec.data_source is not None or claim.spec.data_source_ref is not None:
        why = "our provisioner fills no claim from a dataSource: make a DataVolume with source.pvc, which copies one"
        return ClaimPlan(events=(Event("Warning", reasons.PROVISIONING_FAILED, why),))
    storage = chosen_storage(claim, storage_class, nodes)
    if not storage:
        why = f"no schedulable node has the label {labels.STORAGE}: there is nowhere to put a volume"
        return ClaimPlan(events=(Event("Warning", reasons.PROVISIONING_FAILED, why),))
    name = volume_name(claim.uid)
    told = Event("Normal", reasons.PROVISIONING_SUCCEEDED, f"Successfully provisioned volume {name}")
    return ClaimPlan(volume_for(claim, storage_class, storage), (told,))


def chosen_storage(claim: PersistentVolumeClaim, storage_class: StorageClass, nodes: Iterable[Node]) -> str:
    """As the class says; where the claim has to be, because it is a copy; where the chosen node is; else where most nodes are."""
    said = storage_class.parameters.get(STORAGE_PARAMETER) or claim.annotations.get(labels.STORAGE)
    if said:
        return said
    counts: Counter[str] = Counter()
    for node in nodes:
        storage = node.labels.get(labels.STORAGE, "")
        if storage and node.name == claim.annotations.get(SELECTED_NODE):
            return storage
        if storage and node.labels.get(labels.SCHEDULABLE) == "true" and not node.spec.unschedulable and not node.being_deleted:
            counts[storage] += 1
    return min(counts, key=lambda name: (-counts[name], name), default="")


def volume_for(claim: PersistentVolumeClaim, storage_class: StorageClass, storage: str) -> Document:
    name = volume_name(claim.uid)
    term = {"matchExpressions": [{"key": labels.STORAGE, "operator": "In", "values": [storage]}]}
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.namespace, "name": claim.name}
    return {
        "metadata": {
            "name": name,
            "labels": {labels.STORAGE: storage},
            "annotations": {PROVISIONED_BY: labels.PROVISIONER},
            "finalizers": [CONTENT_FINALIZER],
        },
        "spec": {
            "capacity": {"storage": claim.spec.resources.requests.get("storage", "0")},
            "accessModes": list(claim.spec.access_modes),
            "volumeMode": claim.spec.volume_mode or "Filesystem",
            "storageClassName": storage_class.name,
            "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
            "claimRef": {**reference, "uid": claim.uid},
            "local": {"path": f"{VOLUME_ROOT}/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }
