"""The end of a volume: its content first, then the object. A pod on a node that has it clears the content away."""

from __future__ import annotations

import msgspec

from herder.api.core import Node, PersistentVolume, Pod
from herder.api.storage import CONTENT_FINALIZER
from herder.rules.instances.observed import fenced
from herder.rules.plans import Delete, Document
from herder.rules.volumes.importer import clearing_pod, ended_at
from herder.rules.volumes.provision import is_ours, storage_of

TRY_AGAIN = 5.0


class VolumePlan(msgspec.Struct, frozen=True):
    create_pod: Document | None = None
    delete_pod: Delete | None = None
    delete_volume: bool = False
    # The content is gone, or shall stay.
    remove_finalizer: bool = False
    # Something is destroyed: whether the claim is really gone is asked of the API server itself.
    destroys: bool = False
    next_look: float | None = None


def plan_volume(volume: PersistentVolume, document: Document, pod: Pod | None, node: Node | None, now: float) -> VolumePlan:
    """`pod` is the one that clears it, if there is one, and `node` where it is."""
    if not is_ours(volume) or CONTENT_FINALIZER not in volume.finalizers:
        return VolumePlan()
    if volume.spec.persistent_volume_reclaim_policy != "Delete":
        # Retained: whoever deletes the object has taken care of the content.
        return VolumePlan(remove_finalizer=volume.being_deleted)
    if volume.status.phase == "Bound" or not (volume.being_deleted or volume.status.phase in ("Released", "Failed")):
        return VolumePlan()
    if pod is None:
        return VolumePlan(create_pod=clearing_pod(document, volume, storage_of(volume)), destroys=True)
    if pod.status.phase == "Succeeded":
        return VolumePlan(delete_volume=not volume.being_deleted, remove_finalizer=True, destroys=True)
    lost = bool(pod.spec.node_name) and fenced(node)
    if lost:
        return VolumePlan(delete_pod=Delete(pod.name, pod.uid, 0))
    if pod.status.phase != "Failed" or pod.being_deleted:
        return VolumePlan()
    left = ended_at(pod) + TRY_AGAIN - now
    return VolumePlan(next_look=left) if left > 0 else VolumePlan(delete_pod=Delete(pod.name, pod.uid))
