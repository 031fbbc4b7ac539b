"""Our StorageClass, and how the volumes of our provisioner look: where they are, and how they are called."""

from __future__ import annotations

from typing import Any, Final

from herder.api import labels
from herder.api.crds import PART_OF, PRODUCT

DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
# A parameter of the class: which nodes keep its volumes (their label herder.dev/storage).
STORAGE_PARAMETER: Final = "storage"
# A name and not a place on any machine: an agent finds the last part of it below a folder of its own.
VOLUME_ROOT: Final = "/herder/volumes"
# Taken away by the provisioner, once the content is gone or shall stay.
CONTENT_FINALIZER: Final = "herder.dev/volume-content"
# On a claim, by its owner: these namespaces (by comma, or *) may copy it.
ALLOW_CLONE: Final = "herder.dev/allow-clone-from"
Document = dict[str, Any]


def storage_class(*, default: bool = True) -> Document:
    """As the embedded engine and `herder install` make it. A cluster that has a default class already keeps its own."""
    marked = {"annotations": {DEFAULT_CLASS: "true"}} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": labels.STORAGE_CLASS, "labels": {PART_OF: PRODUCT}, **marked},
        "provisioner": labels.PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
    }


def volume_name(claim_uid: str) -> str:
    """Follows from the claim, so that making it twice is "already exists"."""
    return f"pvc-{claim_uid}"
