"""The objects that a machine makes: its instance and its DataVolumes."""

from __future__ import annotations

import hashlib

import msgspec

from herder.api import labels, registry
from herder.api.reading import entries, part, text
from herder.rules.plans import Document


def template_hash(machine: Document) -> str:
    """Equal for equal templates, whatever the order of their fields."""
    template = part(machine, "spec", "template")
    return hashlib.sha256(msgspec.json.encode(template, order="deterministic")).hexdigest()[:16]


def instance_of(machine: Document) -> Document:
    """The template made an instance. It has its finalizer from the start: no pod of it may be overlooked."""
    template = part(machine, "spec", "template")
    metadata, own = part(template, "metadata"), part(machine, "metadata")
    return {
        "metadata": {
            "name": text(own, "name"),
            "namespace": text(own, "namespace"),
            "labels": {**part(metadata, "labels"), labels.MACHINE_NAME: text(own, "name")},
            "annotations": {**part(metadata, "annotations"), labels.TEMPLATE_HASH: template_hash(machine)},
            "finalizers": [labels.INSTANCE_FINALIZER],
            "ownerReferences": [owner_reference(machine)],
        },
        "spec": part(template, "spec"),
    }


def data_volumes_of(machine: Document) -> list[Document]:
    own = part(machine, "metadata")
    return [
        {
            "metadata": {
                "name": text(part(template, "metadata"), "name"),
                "namespace": text(own, "namespace"),
                "labels": {**part(template, "metadata", "labels"), labels.MACHINE_NAME: text(own, "name")},
                "annotations": part(template, "metadata", "annotations"),
                "ownerReferences": [owner_reference(machine)],
            },
            "spec": part(template, "spec"),
        }
        for template in entries(machine, "spec", "dataVolumeTemplates")
    ]


def owner_reference(machine: Document) -> Document:
    own = part(machine, "metadata")
    return {
        "apiVersion": registry.MACHINE.api_version,
        "kind": registry.MACHINE.kind,
        "name": text(own, "name"),
        "uid": text(own, "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
