"""What the server decides about an object's metadata, whatever the client says. Pure."""

from __future__ import annotations

from typing import Any

from herder.api.world import World, timestamp
from herder.server.same import same_json

Document = dict[str, Any]

# Kept from the stored object on every update: a client that sends something else is not told, it is simply not heard.
SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")

MAX_GENERATED_PREFIX = 58

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


def metadata_of(obj: Document) -> Document:
    found = obj.get("metadata")
    if not isinstance(found, dict):
        found = obj["metadata"] = {}
    return found


def begin_life(obj: Document, world: World) -> None:
    """A new object: its identity is ours to give."""
    metadata = metadata_of(obj)
    for field in (*SERVER_OWNED, "resourceVersion", "managedFields"):
        metadata.pop(field, None)
    metadata["uid"] = world.uid()
    metadata["creationTimestamp"] = timestamp(world.now())
    _drop_empty(metadata)


def generate_name(metadata: Document, world: World) -> None:
    metadata["name"] = metadata["generateName"][:MAX_GENERATED_PREFIX] + world.suffix()


def carry_over(new: Document, old: Document) -> None:
    """An update: what the server owns stays as stored."""
    fresh, stored = metadata_of(new), metadata_of(old)
    for field in SERVER_OWNED:
        if field in stored:
            fresh[field] = stored[field]
        else:
            fresh.pop(field, None)
    fresh["name"] = stored["name"]
    if "namespace" in stored:
        fresh["namespace"] = stored["namespace"]
    if "generateName" in stored:
        fresh.setdefault("generateName", stored["generateName"])
    _drop_empty(fresh)


def _drop_empty(metadata: Document) -> None:
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if field in metadata and not metadata[field]:
            del metadata[field]


def finalizers_of(obj: Document) -> list[str]:
    return list(obj["metadata"].get("finalizers") or ())


def set_finalizers(obj: Document, finalizers: list[str]) -> None:
    if finalizers:
        obj["metadata"]["finalizers"] = finalizers
    else:
        obj["metadata"].pop("finalizers", None)


def is_terminating(obj: Document) -> bool:
    return obj["metadata"].get("deletionTimestamp") is not None


def same_but_for_version(new: Document, old: Document) -> bool:
    """Whether an update changes nothing: then nothing is written, and the resourceVersion stays."""
    left, right = dict(new), dict(old)
    left_meta, right_meta = dict(left.pop("metadata")), dict(right.pop("metadata"))
    for metadata in (left_meta, right_meta):
        metadata.pop("resourceVersion", None)
        metadata.pop("managedFields", None)
    return same_json(left, right) and same_json(left_meta, right_meta)


def ordered(obj: Document) -> Document:
    """apiVersion, kind and metadata first, as everyone writes them."""
    head = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"]}
    return {**head, **obj}
