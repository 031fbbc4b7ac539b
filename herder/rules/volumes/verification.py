"""Whether an importer pod may be obeyed: judged by the objects that it is about, as the API server has them now.

Whoever may create pods in a namespace can write any annotation, any owner and the name of any volume into one. So a node takes
nothing from the pod but the names to look up. It fills a volume only for a DataVolume that yields this very order, grows one only
as far as its claim asks, and clears one only where the volume itself says that it is to be cleared.
"""

from __future__ import annotations

import msgspec

from herder.api import registry
from herder.api.account import SYSTEM_NAMESPACE
from herder.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from herder.api.imports import ImportDefinition
from herder.api.kinds import DataVolume
from herder.api.meta import OwnerReference
from herder.api.storage import ALLOW_CLONE
from herder.rules.volumes.importer import definition_of, requested
from herder.rules.volumes.provision import is_ours
from herder.rules.volumes.source import Source, is_allowed

ENDING = ("Released", "Failed")


class Filling(msgspec.Struct, frozen=True):
    """What the API server has of the DataVolume that an importer pod names as its controller. None: it has no such object."""

    data_volume: DataVolume | None = None
    # Of the DataVolume's name, in its namespace, and the volume that it is bound to.
    claim: PersistentVolumeClaim | None = None
    volume: PersistentVolume | None = None
    # What is copied; None where nothing is.
    source: Source | None = None


def data_volume_of(pod: Pod) -> OwnerReference | None:
    """The DataVolume that the pod says it works for."""
    owner = pod.controller
    right = owner is not None and (owner.api_version, owner.kind) == (registry.DATA_VOLUME.api_version, registry.DATA_VOLUME.kind)
    return owner if right else None


def volume_of(pod: Pod) -> OwnerReference | None:
    """The PersistentVolume that the pod says it clears."""
    owner = pod.controller
    return owner if owner is not None and (owner.api_version, owner.kind) == ("v1", "PersistentVolume") else None


def filling_problem(pod: Pod, definition: ImportDefinition, found: Filling) -> str:
    """Why the volume is not filled by this pod; empty where it is."""
    owner, volume = data_volume_of(pod), found.data_volume
    if owner is None:
        return f"pod {pod.name} has no DataVolume as its controller: a volume is filled for nobody else"
    if volume is None or volume.uid != owner.uid or volume.namespace != pod.namespace:
        return f"DataVolume {owner.name} with uid {owner.uid} does not exist in namespace {pod.namespace}"
    if volume.being_deleted:
        return f"DataVolume {volume.name} is being deleted"
    if problem := _target_problem(volume, found.claim, found.volume):
        return problem
    if found.source is not None and (problem := _source_problem(volume, found.source)):
        return problem
    assert found.volume is not None, "it was looked at"
    return _difference(definition, definition_of(volume, found.volume, found.source.volume if found.source else None), volume)


def stranger_problem(pod: Pod, definition: ImportDefinition) -> str:
    """Why nothing need be looked up for a pod that clears or grows a volume; empty where it may be one of ours."""
    owner = volume_of(pod)
    if pod.namespace != SYSTEM_NAMESPACE:
        return (
            f"volumes are cleared and grown only by pods of namespace {SYSTEM_NAMESPACE}, and pod {pod.name} is in {pod.namespace}"
        )
    if owner is None or owner.name != definition.volume:
        return f"pod {pod.name} has no PersistentVolume {definition.volume} as its controller"
    return ""


def clearing_problem(
    pod: Pod, definition: ImportDefinition, volume: PersistentVolume | None, claim: PersistentVolumeClaim | None
) -> str:
    """Why the content stays; empty where it goes. `claim`: the one that the volume was made for, by its name."""
    if problem := stranger_problem(pod, definition):
        return problem
    if volume is None or volume.uid != pod.controller_uid:
        return f"PersistentVolume {definition.volume} with uid {pod.controller_uid} does not exist"
    if not is_ours(volume) or volume.spec.persistent_volume_reclaim_policy != "Delete":
        return f"PersistentVolume {volume.name} is none of ours with reclaim policy Delete: its content stays"
    if volume.status.phase not in ENDING and not volume.being_deleted:
        return f"PersistentVolume {volume.name} is {volume.status.phase or 'new'}, and not being deleted: its content stays"
    reference = volume.spec.claim_ref
    if claim is not None and reference is not None and claim.uid == reference.uid:
        return f"PersistentVolumeClaim {claim.namespace}/{claim.name} of PersistentVolume {volume.name} still exists"
    return ""


def growing_problem(
    pod: Pod, definition: ImportDefinition, volume: PersistentVolume | None, claim: PersistentVolumeClaim | None
) -> str:
    """Why the volume stays as large as it is; empty where it grows. `claim`: the one that the volume is for, by its name."""
    if problem := stranger_problem(pod, definition):
        return problem
    if volume is None or volume.uid != pod.controller_uid:
        return f"PersistentVolume {definition.volume} with uid {pod.controller_uid} does not exist"
    if not is_ours(volume):
        return f"PersistentVolume {volume.name} was not made by our provisioner"
    if claim is None or claim.being_deleted or not is_bound(claim, volume):
        return f"PersistentVolume {volume.name} is not bound to a claim that is bound to it, and stays"
    if definition.unfilled and claim.controller_uid:
        return f"PersistentVolumeClaim {claim.namespace}/{claim.name} is filled by its controller, and the pod says by nobody"
    if definition.capacity > requested(claim):
        asked = claim.spec.resources.requests.get("storage", 0)
        return f"PersistentVolumeClaim {claim.namespace}/{claim.name} asks for {asked}, and the pod for {definition.capacity} bytes"
    return ""


def saving_problem(
    pod: Pod, definition: ImportDefinition, volume: PersistentVolume | None, claim: PersistentVolumeClaim | None
) -> str:
    """Why no memory is saved into the volume by this pod; empty where it is. Whose memory it is the node knows by itself: of a
    guest of the very instance that the pod belongs to."""
    owner = pod.controller
    if owner is None or (owner.api_version, owner.kind) != (registry.INSTANCE.api_version, registry.INSTANCE.kind):
        return f"pod {pod.name} has no VirtualMachineInstance as its controller: memory is saved for nobody else"
    mounted = [one.persistent_volume_claim.claim_name for one in pod.spec.volumes or () if one.persistent_volume_claim is not None]
    if volume is None or claim is None or not is_bound(claim, volume):
        return f"PersistentVolume {definition.volume} is not bound to a claim that is bound to it"
    if claim.namespace != pod.namespace or claim.name not in mounted:
        return f"PersistentVolumeClaim {claim.namespace}/{claim.name} is not mounted by pod {pod.name}"
    if not is_ours(volume) or definition.capacity > requested(claim):
        return f"PersistentVolume {volume.name} was not made by our provisioner, or is smaller than the pod says"
    return ""


def _target_problem(volume: DataVolume, claim: PersistentVolumeClaim | None, target: PersistentVolume | None) -> str:
    if claim is None or claim.controller_uid != volume.uid:
        return f"PersistentVolumeClaim {volume.name} is not there, or not of DataVolume {volume.name}"
    if target is None or not is_bound(claim, target):
        return f"PersistentVolumeClaim {claim.name} is not bound to a volume that is bound to it"
    return "" if is_ours(target) else f"PersistentVolume {target.name} was not made by our provisioner, and cannot be filled"


def _source_problem(volume: DataVolume, source: Source) -> str:
    name = f"PersistentVolumeClaim {source.namespace}/{source.name}"
    # Before anything is told of it: whether it exists is the business of its namespace.
    if not is_allowed(volume, source):
        return f"{name} may be copied by other namespaces only if its annotation {ALLOW_CLONE} names them ({volume.namespace})"
    if source.claim is None or source.volume is None or not is_bound(source.claim, source.volume):
        return f"{name} is not bound to a volume that is bound to it"
    return "" if is_ours(source.volume) else f"PersistentVolume {source.volume.name} of {name} was not made by our provisioner"


def is_bound(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Both say so, and mean each other: a claim alone may name any volume."""
    reference = volume.spec.claim_ref
    back = (reference.namespace, reference.name, reference.uid) if reference is not None else None
    return (
        claim.status.phase == "Bound" and claim.spec.volume_name == volume.name and back == (claim.namespace, claim.name, claim.uid)
    )


def _difference(said: ImportDefinition, due: ImportDefinition, volume: DataVolume) -> str:
    """How simulated nodes are to behave is none of the order, and may be annotated anew at any time."""
    fields = [name for name in ImportDefinition.__struct_fields__ if name != "simulated"]
    differ = [name for name in fields if getattr(said, name) != getattr(due, name)]
    if not differ:
        return ""
    return f"what the pod asks for is not what DataVolume {volume.name} asks for: {', '.join(differ)} of it differ"
