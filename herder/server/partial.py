"""Reading as little of a stored object as a write of its status needs: the rest stays the bytes that it is.

The agents of the nodes write little else, several times for each pod, and most of a pod is its spec and the list of who wrote it.
What a write of the status cannot change need not be decoded, judged, compared and encoded again.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

Document = dict[str, Any]

_READ = ("apiVersion", "kind", "status")
_parts = msgspec.json.Decoder(dict[str, Raw]).decode
_entries = msgspec.json.Decoder(list[dict[str, Raw]]).decode
_decode = msgspec.json.decode
_NOTHING = Raw(b"null")


class _Metadata(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """What a patch may say about an object without reaching what is not read."""

    name: Raw = _NOTHING
    namespace: Raw = _NOTHING
    uid: Raw = _NOTHING
    resourceVersion: Raw = _NOTHING
    labels: Raw = _NOTHING
    annotations: Raw = _NOTHING


class _StatusPatch(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    apiVersion: Raw = _NOTHING
    kind: Raw = _NOTHING
    metadata: _Metadata = _Metadata()
    status: Raw = _NOTHING


_status_patch = msgspec.json.Decoder(_StatusPatch).decode


def is_of_status(patch: bytes) -> bool:
    """Whether a merge patch reaches only what `read_partly` reads. What is unusual in any way does not count as such."""
    try:
        _status_patch(patch)
    except (ValueError, RecursionError):
        return False
    return True


def read_partly(raw: bytes) -> tuple[Document, Document]:
    """The stored object, and a copy to be changed: like the whole object, but for `Raw` in place of what is not read (the spec, and
    the sets of fields in managedFields). The copy comes without managedFields, as from a client that does not care."""
    parts = _parts(raw)
    metadata = _parts(parts["metadata"])
    entries = metadata.pop("managedFields", None)
    old, new = _read(parts, metadata), _read(parts, metadata)
    if entries is not None:
        old["metadata"]["managedFields"] = [_entry(entry) for entry in _entries(entries)]
    return old, new


def _read(parts: dict[str, Raw], metadata: dict[str, Raw]) -> Document:
    document: Document = {field: _decode(part) if field in _READ else part for field, part in parts.items()}
    document["metadata"] = {field: _decode(part) for field, part in metadata.items()}
    return document


def _entry(parts: dict[str, Raw]) -> Document:
    return {field: part if field == "fieldsV1" else _decode(part) for field, part in parts.items()}


def only_read(document: Document) -> Document:
    """What there is to look at: all but the parts that are bytes. It holds the very values of the document."""
    return {field: value for field, value in document.items() if type(value) is not Raw}
