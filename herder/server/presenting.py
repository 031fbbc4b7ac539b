"""From stored bytes to what a client asked for: another version of the kind, a Table, metadata only, YAML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import yaml

from herder.server.accept import YAML, Accepted, parse_accept
from herder.server.request import Request, Response
from herder.server.served import Served
from herder.server.status import bad_request, not_acceptable
from herder.server.store import Record
from herder.server.tables import IncludeObject, partial_object_metadata, partial_object_metadata_list, render_stored_table

ACCEPTED_TYPES = ("application/json", "application/yaml")
Document = dict[str, Any]


def accepted(request: Request) -> Accepted:
    wanted = parse_accept(request.headers.get("Accept", ""))
    if wanted is None:
        raise not_acceptable(ACCEPTED_TYPES)
    return wanted


def shown(served: Served, record: Record) -> bytes:
    """A stored object as it is read now. One from before the newest schema gets that schema's defaults on the way out."""
    if record.revision >= served.since:
        return record.raw if served.stored_here else in_version(served, record.raw)
    document = record.document()
    document["apiVersion"] = served.resource.group_version
    served.schema.apply_defaults(document)
    return msgspec.json.encode(document)


def in_version(served: Served, raw: bytes) -> bytes:
    """The stored bytes as the asked-for version shows them. Versions of a CRD differ in nothing but their name."""
    if served.stored_here:
        return raw
    head = b'{"apiVersion":' + msgspec.json.encode(served.storage_version)
    if raw.startswith(head):
        return b'{"apiVersion":' + msgspec.json.encode(served.resource.group_version) + raw[len(head) :]
    document = msgspec.json.decode(raw)
    document["apiVersion"] = served.resource.group_version
    return msgspec.json.encode(document)


def include_object(request: Request) -> IncludeObject:
    value = request.query.get("includeObject") or "Metadata"
    if value not in ("None", "Metadata", "Object"):
        raise bad_request(f'includeObject: Unsupported value: "{value}": supported values: "None", "Metadata", "Object"')
    return value


def one(request: Request, served: Served, raw: bytes, now: float, status: int = 200) -> Response:
    """A single object."""
    wanted = accepted(request)
    raw = in_version(served, raw)
    if wanted.as_kind == "Table":
        raw = render_stored_table(served.printer, [raw], include_object(request), _revision_of(raw), now)
    elif wanted.as_kind == "PartialObjectMetadata":
        raw = partial_object_metadata(msgspec.json.decode(raw))
    return body(wanted, raw, status)


def many(request: Request, served: Served, records: Sequence[Record], metadata: Document, now: float) -> Response:
    """A list. The objects' bytes are joined as they are stored: nothing is decoded to be encoded again."""
    wanted = accepted(request)
    raws = [shown(served, record) for record in records]
    if wanted.as_kind == "Table":
        return body(wanted, render_stored_table(served.printer, raws, include_object(request), metadata, now))
    if wanted.as_kind in ("PartialObjectMetadata", "PartialObjectMetadataList"):
        documents = (msgspec.json.decode(raw) for raw in raws)
        return body(wanted, partial_object_metadata_list(documents, metadata))
    return body(wanted, list_body(served, _without_kind(served, raws) if served.resource.builtin else raws, metadata))


def _without_kind(served: Served, raws: Iterable[bytes]) -> Iterable[bytes]:
    """The items of a list of a built-in kind do not say what they are: the list does."""
    resource = served.resource
    head = msgspec.json.encode({"apiVersion": resource.group_version, "kind": resource.kind})[:-1] + b","
    start = len(head)
    return [b"{" + raw[start:] if raw.startswith(head) else raw for raw in raws]


def list_body(served: Served, raws: Iterable[bytes], metadata: Document) -> bytes:
    resource = served.resource
    head = {"kind": resource.list_kind or f"{resource.kind}List", "apiVersion": resource.group_version, "metadata": metadata}
    return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(raws) + b"]}\n"


def _revision_of(raw: bytes) -> Document:
    return {"resourceVersion": msgspec.json.decode(raw)["metadata"].get("resourceVersion", "")}


def event_shaper(request: Request, served: Served, now: Callable[[], float]) -> Callable[[bytes], bytes] | None:
    """How each object of a watch is to be shown; None when its bytes go out as they are."""
    wanted = accepted(request)
    if wanted.as_kind == "Table":
        return _TableEvents(served, include_object(request), now)
    if wanted.as_kind:
        return lambda raw: partial_object_metadata(msgspec.json.decode(raw))
    if not served.stored_here:
        return lambda raw: in_version(served, raw)
    return None


class _TableEvents:
    """Each event is a Table of one row; only the first one carries the columns."""

    def __init__(self, served: Served, include: IncludeObject, now: Callable[[], float]) -> None:
        self._served = served
        self._include: IncludeObject = include
        self._now = now
        self._first = True

    def __call__(self, raw: bytes) -> bytes:
        raw = in_version(self._served, raw)
        columns, self._first = self._first, False
        return render_stored_table(self._served.printer, [raw], self._include, _revision_of(raw), self._now(), columns)


def body(wanted: Accepted, raw: bytes, status: int = 200) -> Response:
    if wanted.media_type == YAML:
        text = yaml.safe_dump(msgspec.json.decode(raw), default_flow_style=False, sort_keys=False)
        return Response(status, text.encode(), "application/yaml")
    return Response(status, raw)
