"""What `kubectl apply` wrote before it came with --server-side: an annotation with the configuration that was applied last.

For the manager named kubectl alone, as in Kubernetes: what the annotation says, and the object still has, is kubectl's own, whoever
holds it by the record; and the annotation is kept true for those who go on without --server-side.
"""

from __future__ import annotations

from typing import Any

import msgspec

from herder.server.apply.owning import NotDivisible, owned
from herder.server.fields.managed import FieldManager
from herder.server.fields.sets import FieldSet, difference
from herder.server.sorted_json import encode_sorted

Document = dict[str, Any]
KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def allowed_by_last_applied(live: Document, fields: FieldManager) -> FieldSet:
    """The fields of the annotation that the object still has as they are there."""
    try:
        config = msgspec.json.decode(_annotation(live) or "{}", type=dict[str, Any])
        if config.get("apiVersion") != live.get("apiVersion"):
            return {}
        mine = owned(fields.shape, config)
        change = fields.compare(config, live, {})
    except (msgspec.DecodeError, NotDivisible, AttributeError, TypeError):
        return {}  # somebody wrote something else into it
    for changed in (change.modified, change.added, change.removed):
        mine = difference(mine, changed)
    return mine


def refresh_last_applied(document: Document, config: Document) -> None:
    """In place, in the maps that hold it: they are made anew."""
    if not _annotation(document):
        return
    metadata: Document = config.get("metadata") or {}
    plain = {**config, "metadata": metadata}
    if ANNOTATION in (metadata.get("annotations") or {}):
        plain["metadata"] = {
            **metadata,
            "annotations": {name: text for name, text in metadata["annotations"].items() if name != ANNOTATION},
        }
    annotations = {**document["metadata"]["annotations"], ANNOTATION: encode_sorted(plain).decode() + "\n"}
    document["metadata"] = {**document["metadata"], "annotations": annotations}


def _annotation(document: Document) -> str:
    annotations = document.get("metadata", {}).get("annotations") or {}
    return annotations.get(ANNOTATION) or ""
