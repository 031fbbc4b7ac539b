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


# Of these a template has no say.
_OF_ITS_MEMORY = (labels.RESUME_FROM, labels.NOT_RESUMED)


def instance_of(machine: Document, resume_from: str = "", not_resumed: str = "") -> Document:
    """The template made an instance. It has its finalizer from the start: no pod of it may be overlooked. `resume_from`: uid of the
    claim with the memory that its guest goes on from; `not_resumed`: why it does not."""
    template = part(machine, "spec", "template")
    metadata, own, given = part(template, "metadata"), part(machine, "metadata"), given_by(machine)
    revision = text(part(metadata, "labels"), labels.POOL_REVISION)
    noted = without_nothing(
        {
            labels.TEMPLATE_HASH: template_hash(machine),
            labels.LAST_APPLIED: note_of(given.record),
            labels.RESUME_FROM: resume_from or None,
            labels.NOT_RESUMED: not_resumed or None,
        }
    )
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
            "annotations": {**_said(part(metadata, "annotations")), **noted},
            "finalizers": [labels.INSTANCE_FINALIZER],
            "ownerReferences": [owner_reference(machine)],
        },
        "spec": part(template, "spec"),
    }


def _said(annotations: Document) -> Document:
    return {name: value for name, value in annotations.items() if name not in _OF_ITS_MEMORY}


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
