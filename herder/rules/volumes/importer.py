"""The pods that fill a volume, that grow one and that clear one. Nothing is pulled: the node's agent does the work itself."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import defaults, labels
from herder.api.account import SYSTEM_NAMESPACE
from herder.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from herder.api.imports import ImportDefinition
from herder.api.kinds import DataVolume
from herder.api.quantity import parse_quantity
from herder.api.reading import part, text
from herder.rules.node_lifecycle.taints import DISK_PRESSURE
from herder.rules.plans import Document, plain
from herder.rules.volumes.claims import owner_reference

IMAGE = "herder.dev/importer"
CONTAINER = "importer"
REQUESTS = {"cpu": "50m", "memory": "64Mi"}
GRACE = 5
TOLERATIONS = [{"key": labels.VM_HOST_TAINT, "operator": "Exists"}]


def importer_name(uid: str, attempt: int) -> str:
    """Follows from the DataVolume: whoever makes it twice makes the same one."""
    return f"importer-{uid[:8]}-{attempt}"


def attempt_of(pod: Pod) -> int:
    written = pod.labels.get(labels.IMPORT_ATTEMPT, "")
    return int(written) if written.isdecimal() else 0


def importer_pod(
    document: Document, volume: DataVolume, target: PersistentVolume, source: PersistentVolume | None, attempt: int
) -> Document:
    own = part(document, "metadata")
    definition = definition_of(volume, target, source)
    return {
        "metadata": {
            "name": importer_name(volume.uid, attempt),
            "namespace": volume.namespace,
            "labels": {labels.IMPORTER: volume.uid, labels.IMPORT_ATTEMPT: str(attempt), labels.APP: CONTAINER},
            "annotations": {labels.IMPORT: _text(definition)},
            "ownerReferences": [owner_reference(own)],
        },
        "spec": {**_pod_spec(_priority(volume)), "volumes": _mounted(volume)},
    }


def definition_of(volume: DataVolume, target: PersistentVolume, source: PersistentVolume | None) -> ImportDefinition:
    """What a node is to do for this DataVolume. The node makes it again from what it reads itself (verification.py)."""
    simulated = {k.removeprefix(labels.SIMULATED): v for k, v in volume.annotations.items() if k.startswith(labels.SIMULATED)}
    content = volume.spec.source
    return ImportDefinition(
        action="http" if content.http else "clone" if content.pvc else "blank",
        volume=target.name,
        capacity=capacity_of(target),
        http=content.http,
        source=source.name if source is not None else "",
        preallocate=bool(volume.spec.preallocation),
        simulated=simulated,
    )


def capacity_of(volume: PersistentVolume) -> int:
    return parse_quantity(volume.spec.capacity.get("storage", 0)).value()


def requested(claim: PersistentVolumeClaim) -> int:
    """How large the claim wants its volume to be."""
    return parse_quantity(claim.spec.resources.requests.get("storage", 0)).value()


def _text(definition: ImportDefinition) -> str:
    return msgspec.json.encode(plain(definition)).decode()


def _pod_spec(more: dict[str, Any]) -> Document:
    return {
        "restartPolicy": "Never",
        "schedulerName": defaults.SCHEDULER_NAME,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE,
        "nodeSelector": {labels.SCHEDULABLE: "true"},
        "tolerations": TOLERATIONS,
        "containers": [{"name": CONTAINER, "image": IMAGE, "resources": {"requests": REQUESTS}}],
        **more,
    }


def _priority(volume: DataVolume) -> Document:
    return {"priorityClassName": volume.spec.priority_class_name} if volume.spec.priority_class_name else {}


def _mounted(volume: DataVolume) -> list[Document]:
    """The claims, so that they are protected while they are used and the pod goes where they are; and what the node may read."""
    content = volume.spec.source
    mounted: list[Document] = [{"name": "target", "persistentVolumeClaim": {"claimName": volume.name}}]
    if content.pvc is not None and (content.pvc.namespace or volume.namespace) == volume.namespace:
        mounted.append({"name": "source", "persistentVolumeClaim": {"claimName": content.pvc.name}})
    if content.http is not None and content.http.secret_ref:
        mounted.append({"name": "credentials", "secret": {"secretName": content.http.secret_ref}})
    if content.http is not None and content.http.cert_config_map:
        mounted.append({"name": "certificates", "configMap": {"name": content.http.cert_config_map}})
    return mounted


def growing_name(volume: str, attempt: int) -> str:
    return f"grow-{volume}-{attempt}"


def growing_pod(document: Document, definition: ImportDefinition, storage: str, attempt: int, node: str) -> Document:
    """In a namespace of our own, as it belongs to the volume. `node`: where the guest is that has the disk, or empty. A pod that is
    bound there asks no scheduler: the guest may be on a node that takes nobody else."""
    own = part(document, "metadata")
    selector = {} if node else {labels.SCHEDULABLE: "true", labels.STORAGE: storage}
    more = {
        **({"nodeName": node} if node else {}),
        "nodeSelector": selector,
        # Where there is no room its node says so, with the numbers.
        "tolerations": [*TOLERATIONS, {"key": DISK_PRESSURE, "operator": "Exists"}],
        # Without requests: it takes next to nothing, and must not be refused by a node that is full of guests.
        "containers": [{"name": CONTAINER, "image": IMAGE}],
    }
    return {
        "metadata": {
            "name": growing_name(definition.volume, attempt),
            "namespace": SYSTEM_NAMESPACE,
            "labels": {labels.IMPORTER: text(own, "uid"), labels.IMPORT_ATTEMPT: str(attempt), labels.APP: CONTAINER},
            "annotations": {labels.IMPORT: _text(definition)},
            "ownerReferences": [_owned_by_volume(document)],
        },
        "spec": _pod_spec(more),
    }


def _owned_by_volume(document: Document) -> Document:
    own = part(document, "metadata")
    reference = {"apiVersion": "v1", "kind": "PersistentVolume", "name": text(own, "name"), "uid": text(own, "uid")}
    return {**reference, "controller": True, "blockOwnerDeletion": True}


def ended_at(pod: Pod) -> float:
    """When its work was over; when it was made, where nobody has said."""
    ends = [one.state.terminated.finished_at for one in pod.status.container_statuses if one.state.terminated is not None]
    made = pod.metadata.creation_timestamp
    return max((end.timestamp() for end in ends if end is not None), default=made.timestamp() if made else 0.0)


def clearing_name(volume: str) -> str:
    return f"clear-{volume}"


def clearing_pod(document: Document, volume: PersistentVolume, storage: str) -> Document:
    """In a namespace of our own: that of the claim may be gone."""
    selector = {labels.SCHEDULABLE: "true", labels.STORAGE: storage}
    return {
        "metadata": {
            "name": clearing_name(volume.name),
            "namespace": SYSTEM_NAMESPACE,
            "labels": {labels.IMPORTER: volume.uid, labels.APP: CONTAINER},
            "annotations": {labels.IMPORT: _text(ImportDefinition(action="delete", volume=volume.name))},
            "ownerReferences": [_owned_by_volume(document)],
        },
        # A full disk must not keep away the one who makes room on it.
        "spec": _pod_spec({"nodeSelector": selector, "tolerations": [*TOLERATIONS, {"key": DISK_PRESSURE, "operator": "Exists"}]}),
    }
