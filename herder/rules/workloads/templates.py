"""The template of a Deployment, and the ReplicaSet that is made of it."""

from __future__ import annotations

import hashlib

import msgspec

from herder.api.builtin.semantics import same
from herder.api.core import Deployment, ReplicaSet
from herder.api.world import SUFFIX_ALPHABET
from herder.rules.plans import Document
from herder.rules.workloads.claiming import controller_reference

TEMPLATE_HASH = "pod-template-hash"
LONGEST_NAME = 253


class Member(msgspec.Struct, frozen=True):
    """A ReplicaSet of a Deployment, with its template as it was written."""

    view: ReplicaSet
    template: Document

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def size(self) -> int:
        return 1 if self.view.spec.replicas is None else self.view.spec.replicas

    @property
    def created(self) -> float:
        time = self.view.metadata.creation_timestamp
        return time.timestamp() if time is not None else 0.0


def same_template(one: Document, other: Document) -> bool:
    """But for the label that we add ourselves. Both went through the same defaults."""
    return same(_without_hash(one), _without_hash(other))


def _without_hash(template: Document) -> Document:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != TEMPLATE_HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def template_hash(template: Document, collisions: int | None) -> str:
    """Equal for equal templates. It looks like that of Kubernetes, but is another: theirs is of how Go prints the template."""
    written = msgspec.json.encode([template, collisions], order="deterministic")
    number = int.from_bytes(hashlib.sha256(written).digest()[:4])
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in str(number))


def new_replica_set(deployment: Deployment, selector: Document, template: Document, size: int, annotations: Document) -> Document:
    ending = template_hash(template, deployment.status.collision_count)
    marked = _with_label(template, ending)
    labels = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: ending}
    return {
        "metadata": {
            # It follows from the template: made twice, it is one.
            "name": f"{deployment.name[: LONGEST_NAME - 1 - len(ending)]}-{ending}",
            "namespace": deployment.namespace,
            "labels": marked["metadata"]["labels"],
            "annotations": annotations,
            "ownerReferences": [controller_reference(deployment, "apps/v1", "Deployment")],
        },
        "spec": {
            "replicas": size,
            **({"minReadySeconds": deployment.spec.min_ready_seconds} if deployment.spec.min_ready_seconds else {}),
            "selector": {**selector, "matchLabels": labels},
            "template": marked,
        },
    }


def _with_label(template: Document, ending: str) -> Document:
    metadata = template.get("metadata") or {}
    return {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), TEMPLATE_HASH: ending}}}
