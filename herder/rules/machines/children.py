"""The objects that a machine makes: its instance and its DataVolumes."""

from __future__ import annotations

import hashlib

import msgspec

from herder.api import labels, registry
from herder.api.inheritance import inherited, note_of
from herder.api.reading import entries, part, text
from herder.rules.inheritance import Given
from herder.rules.plans import Document, without_nothing


def template_hash(machine: Document) -> str:
    """Equal for templates that differ only in what reaches a running instance, and whatever the order of their fields."""
    template = part(machine, "spec", "template")
    spec = {name: value for name, value in part(template, "spec").items() if name != "evictionStrategy"}
    restarted = text(part(template, "metadata", "annotations"), labels.RESTARTED_AT)
    asked = {"metadata": {"annotations": {labels.RESTARTED_AT: restarted}}} if restarted else {}
    return _hash({**asked, "spec": spec})


def hash_by_earlier_versions(machine: Document) -> str:
    """Of the whole template: instances that they have made carry it."""
    return _hash(part(machine, "spec", "template"))


def _hash(template: Document) -> str:
    return hashlib.sha256(msgspec.json.encode(template, order="deterministic")).hexdigest()[:16]


def given_by(machine: Document) -> Given:
    """What a machine's template gives to its instance, be it running or not."""
    metadata = part(machine, "spec", "template", "metadata")
    strategy = part(machine, "spec", "template", "spec").get("evictionStrategy")
    return Given(inherited(part(metadata, "labels")), inherited(part(metadata, "annotations")), strategy)


def instance_of(machine: Document) -> Document:
    """The template made an instance. It has its finalizer from the start: no pod of it may be overlooked."""
    template = part(machine, "spec", "template")
    metadata, own, given = part(template, "metadata"), part(machine, "metadata"), given_by(machine)
    revision = text(part(metadata, "labels"), labels.POOL_REVISION)
    noted = without_nothing({labels.TEMPLATE_HASH: template_hash(machine), labels.LAST_APPLIED: note_of(given.record)})
    return {
        "metadata": {
            "name": text(own, "name"),
            "namespace": text(own, "namespace"),
            "labels": {
                **given.labels,
                **({labels.POOL_REVISION: revision} if revision else {}),
                labels.MACHINE_NAME: text(own, "name"),
            },
            # Of ours, too: a machine may start paused.
            "annotations": {**part(metadata, "annotations"), **noted},
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
