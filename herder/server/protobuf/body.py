"""The envelope: four bytes that say what follows, then the kind of the object and its bytes."""

from __future__ import annotations

from typing import Any

from herder.server.protobuf.messages import read_message
from herder.server.protobuf.special import text_of
from herder.server.protobuf.tables import tables
from herder.server.protobuf.wire import BYTES, Reader, WireError

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
Document = dict[str, Any]


def read_body(raw: bytes, api_version: str = "", kind: str = "") -> Document:
    """The object as JSON would have brought it. The kind that is given is meant where the body does not name one."""
    if not raw.startswith(MAGIC):
        raise WireError("it does not begin as a protobuf message of Kubernetes does")
    if len(raw) == len(MAGIC):
        raise WireError("nothing follows its first four bytes")
    outer = _parts(raw[len(MAGIC) :])
    named = _parts(outer.get(1, b""))
    api_version, kind = text_of(named.get(1, b"")) or api_version, text_of(named.get(2, b"")) or kind
    if not kind or not api_version:
        raise WireError(f"Object '{'apiVersion' if kind else 'Kind'}' is missing in it")
    message = tables().of_kind(api_version, kind)
    if message is None:
        raise WireError(f'no kind "{kind}" of version "{api_version}" is known in protobuf')
    return {"apiVersion": api_version, "kind": kind, **read_message(message, outer.get(2, b""))}


def _parts(raw: bytes) -> dict[int, bytes]:
    """The envelope has nothing but words and bytes."""
    reader, at, found = Reader(raw), 0, dict[int, bytes]()
    while at < len(raw):
        number, wire, at = reader.tag(at, len(raw))
        if number > 4:
            at = reader.skip(wire, at, len(raw))
            continue
        if wire != BYTES:
            raise WireError(f"wrong wire type {wire} in its envelope")
        begin, at = reader.span(at, len(raw))
        found[number] = raw[begin:at]
    return found
