"""The claim of a DataVolume: as it is written, or with what is absent chosen to suit the StorageClass."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from herder.api import labels, reasons, registry
from herder.api.core import StorageClass
from herder.api.kinds import DataVolume
from herder.api.reading import part, text
from herder.api.storage import DEFAULT_CLASS
from herder.rules.plans import Document


class Problem(msgspec.Struct, frozen=True):
    reason: str
    message: str


def chosen_class(volume: DataVolume, classes: Iterable[StorageClass]) -> StorageClass | Problem:
    """The one that is named, else the cluster's default; in the `storage` form else ours: it is the one that can be filled."""
    known = {one.name: one for one in classes}
    spec = volume.spec.pvc or volume.spec.storage
    field = "pvc" if volume.spec.pvc else "storage"
    named = spec.storage_class_name if spec else None
    found = known.get(named) if named else _default(known.values())
    if not named and volume.spec.storage and (found is None or found.provisioner != labels.PROVISIONER):
        found = known.get(labels.STORAGE_CLASS, found)
    if found is None:
        what = f"StorageClass {named} does not exist" if named else "the cluster has no default StorageClass"
        return Problem(reasons.CLASS_NOT_FOUND, f"{what}; name one in spec.{field}.storageClassName, or make it")
    if found.provisioner != labels.PROVISIONER:
        why = f"StorageClass {found.name} makes its volumes by {found.provisioner}, which we cannot fill"
        right = f"make the DataVolume with spec.{field}.storageClassName: {labels.STORAGE_CLASS}"
        return Problem(reasons.CLASS_NOT_SUPPORTED, f"{why}; {right}")
    return found


def _default(classes: Iterable[StorageClass]) -> StorageClass | None:
    """As the API server has it: the newest of those that call themselves so, then by name."""
    marked = [one for one in classes if one.annotations.get(DEFAULT_CLASS) == "true"]
    return min(marked, key=lambda one: (-_made(one), one.name), default=None)


def _made(one: StorageClass) -> float:
    made = one.metadata.creation_timestamp
    return made.timestamp() if made else 0.0


def claim_of(document: Document, volume: DataVolume, chosen: StorageClass, size: str, storage: str) -> Document:
    """`size` stands in where none is asked for; `storage` is where the volume has to be, if that is known."""
    own = part(document, "metadata")
    written = part(document, "spec", "pvc" if volume.spec.pvc else "storage")
    requests = {"storage": size, **part(written, "resources", "requests")}
    spec: Document = {
        **written,
        "accessModes": list(written.get("accessModes") or ("ReadWriteMany",)),
        "storageClassName": chosen.name,
        "resources": {**part(written, "resources"), "requests": requests},
    }
    place = {"annotations": {labels.STORAGE: storage}} if storage else {}
    return {
        "metadata": {
            "name": text(own, "name"),
            "namespace": text(own, "namespace"),
            "labels": part(own, "labels"),
            "ownerReferences": [owner_reference(own)],
            **place,
        },
        "spec": spec,
    }


def owner_reference(own: Document) -> Document:
    return {
        "apiVersion": registry.DATA_VOLUME.api_version,
        "kind": registry.DATA_VOLUME.kind,
        "name": text(own, "name"),
        "uid": text(own, "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
