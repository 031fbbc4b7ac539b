"""The pod of an instance whose guest goes on from memory that was saved, or was to."""

from __future__ import annotations

import msgspec

from herder.api import labels
from herder.api.guest import MemorySource
from herder.rules.migratability.moving import same_kind_of_node
from herder.rules.plans import Document, plain
from herder.rules.suspension.memory import Memory
from herder.rules.targets.merging import constrained


def resuming_pod(pod: Document, memory: Memory) -> Document:
    """The pod of an instance, made to go on from the memory: where its guest can be what it was, as a migration's target."""
    saved, name = memory.record.saved, memory.claim.name
    assert saved is not None, "whole"
    spec = pod["spec"]
    mounted = {"name": "memory", "persistentVolumeClaim": {"claimName": name}}
    affinity = constrained(spec.get("affinity"), None, None, extra=same_kind_of_node(saved.started))
    source = MemorySource(claim=name, pod=memory.record.pod, saved=saved)
    return {
        "metadata": {**pod["metadata"], "annotations": {**pod["metadata"]["annotations"], **_told(pod, source)}},
        "spec": {**spec, "affinity": affinity, "volumes": [*spec["volumes"], mounted]},
    }


def booting_pod(pod: Document, why: str) -> Document:
    """The pod of an instance that was to go on from its memory, and does not: it says why for as long as it runs."""
    metadata = pod["metadata"]
    return {**pod, "metadata": {**metadata, "annotations": {**metadata["annotations"], labels.NOT_RESUMED: why}}}


def _told(pod: Document, source: MemorySource) -> dict[str, str]:
    definition = msgspec.json.decode(pod["metadata"]["annotations"][labels.GUEST])
    return {labels.GUEST: msgspec.json.encode({**definition, "memory": plain(source)}).decode()}
