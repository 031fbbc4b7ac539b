"""Pods come in herds: most specs have been seen before, byte for byte. What was found out about one is kept for its likes.

Reading, defaults, rules and the list of its fields take most of the time of a create, and depend on the spec alone. What could
depend on more than that is not learned here, and goes the long way each time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec
from msgspec import Raw

from herder.api.nesting import is_too_deep
from herder.server.bodies import check_kind, media_type
from herder.server.request import BODY_LIMIT, Request
from herder.server.schema import duplicate_keys
from herder.server.served import Served
from herder.server.status import ApiError

Document = dict[str, Any]

MEMORY_BYTES = 8 * 1024 * 1024
MOST_SEEN = 4096
# Filled in from classes, which come and go.
_GIVEN = ("priority", "priorityClassName", "preemptionPolicy")
# Names that must not be in a spec that is learned. An ephemeral volume's claim is named after the pod. Names can also be written
# with escapes: then these would not be found.
_NOT_ALONE = (b'"priority', b'"preemptionPolicy"', b'"ephemeral"', b"\\u", b"\\/")
_parts = msgspec.json.Decoder(dict[str, Raw]).decode
_decode = msgspec.json.decode


class Template(msgspec.Struct, frozen=True):
    """A spec as it is stored, but for what the cluster gives; its fields, as managedFields names them; what follows from it."""

    spec: bytes
    fields: Raw
    quality: str
    # Accepted, but probably not meant: told each time.
    advice: tuple[str, ...] = ()

    def with_given(self, given: Document) -> Raw:
        return Raw(self.spec[:-1] + b"," + msgspec.json.encode(given)[1:] if given else self.spec)


class _Entry(msgspec.Struct):
    fieldsV1: dict[str, Raw]


class _Metadata(msgspec.Struct):
    managedFields: list[_Entry]


class _Status(msgspec.Struct):
    qosClass: str


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: dict[str, Any]
    status: _Status


_pod = msgspec.json.Decoder(_Pod).decode


class Templates:
    def __init__(self, limit: int = MEMORY_BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._known: OrderedDict[bytes, Template] = OrderedDict()
        # Of specs that were seen once: most never come again, and are not worth the memory.
        self._seen: OrderedDict[int, None] = OrderedDict()

    def read(self, request: Request, served: Served) -> tuple[Document, Template] | None:
        """A new object whose spec is known, and is left as bytes; None where it is not, or where anything else is unusual."""
        if not served.strategy.status_alone or media_type(request) != "application/json":
            return None
        try:
            parts = _parts(request.body)
            template = self._find(bytes(parts.get("spec", b"")))
            rest = _judged(request, served, parts) if template is not None else None
            return (rest, template) if rest is not None and template is not None else None
        except (ValueError, RecursionError, ApiError):
            return None  # the long way says what is wrong

    def _find(self, spec: bytes) -> Template | None:
        template = self._known.get(spec)
        if template is not None:
            self._known.move_to_end(spec)
        return template

    def learn(self, request: Request, stored: bytes, advice: list[str]) -> None:
        """From a pod that was accepted, as it is stored, and what was said about it. At second sight."""
        if media_type(request) != "application/json":
            return
        spec = bytes(_parts(request.body).get("spec", b""))
        if spec in self._known or not self._seen_before(hash(spec)) or any(one in spec for one in _NOT_ALONE):
            return
        if duplicate_keys(spec):
            return  # not everybody wishes to hear of it, but those who do must
        self._keep(spec, _template_of(stored, advice))

    def _seen_before(self, number: int) -> bool:
        if number in self._seen:
            return True
        self._seen[number] = None
        if len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        return False

    def _keep(self, spec: bytes, template: Template) -> None:
        self._known[spec] = template
        self._bytes += _size(spec, template)
        while self._bytes > self._limit:
            self._bytes -= _size(*self._known.popitem(last=False))


def _size(spec: bytes, template: Template) -> int:
    return len(spec) + len(template.spec) + len(bytes(template.fields))


def _template_of(stored: bytes, advice: list[str]) -> Template:
    pod = _pod(stored)
    spec = {field: value for field, value in pod.spec.items() if field not in _GIVEN}
    # A copy: a part of the stored bytes would keep all of them in memory.
    fields = Raw(bytes(pod.metadata.managedFields[0].fieldsV1["f:spec"]))
    about_spec = tuple(one for one in advice if one.startswith("spec"))
    return Template(msgspec.json.encode(spec), fields, pod.status.qosClass, about_spec)


def _judged(request: Request, served: Served, parts: dict[str, Raw]) -> Document | None:
    """All but the spec, of which nothing needs to be said."""
    request.check_write_options()
    if is_too_deep(b"{" + b"".join(bytes(part) for field, part in parts.items() if field != "spec")):
        return None
    document: Document = {field: part if field == "spec" else _decode(part) for field, part in parts.items()}
    if len(request.body) > BODY_LIMIT or duplicate_keys(request.body, document):
        return None
    del document["spec"]
    check_kind(document, served)
    if not served.schema.accepts(msgspec.json.encode(document)) or served.strategy.conform(document):
        return None
    document.pop("status", None)  # the server begins it anew
    return document
