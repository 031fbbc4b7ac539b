"""From stored bytes to what a client asked for: another version of the kind, a Table, metadata only, YAML."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import yaml

from herder.server.accept import METADATA, METADATA_LIST, YAML, Accepted, parse_accept
from herder.server.request import Answer, Request, Response, Stream
from herder.server.served import Served
from herder.server.status import ApiError, bad_request, cannot_be_shown, not_acceptable
from herder.server.store import Record
from herder.server.tables import (
    IncludeObject,
    Printer,
    partial_metadata,
    partial_object_metadata,
    partial_object_metadata_list,
    render_stored_table,
    stored_row,
    table_of,
)

ACCEPTED_TYPES = ("application/json", "application/yaml")
Document = dict[str, Any]
# A list larger than this goes out in pieces.
STREAM_ABOVE = 1024 * 1024
CHUNK_BYTES = 256 * 1024
TURN_BYTES = 1024 * 1024
# What looking at an object costs, however small it is.
SMALLEST = 512
# Writing YAML takes a hundred times as long as writing JSON, which is YAML, too.
LONGEST_YAML = 32 * 1024


def accepted(request: Request) -> Accepted:
    wanted = parse_accept(request.headers.get("Accept", ""), request.tables)
    if wanted is None:
        raise not_acceptable(ACCEPTED_TYPES)
    return wanted


def check_accepted(request: Request, served: Served, *, many: bool) -> None:
    """Before anything is done: what was done could not be told."""
    wanted, resource = accepted(request).as_kind, served.resource
    if many and wanted == METADATA:
        raise cannot_be_shown(wanted, f"is a list ({resource.list_kind or f'{resource.kind}List'})")
    if not many and wanted == METADATA_LIST:
        raise cannot_be_shown(wanted, f"is not a list ({resource.kind})")


def refusal(request: Request, error: ApiError) -> Response:
    """In YAML for whoever asked for that."""
    wanted = parse_accept(request.headers.get("Accept", ""))
    answer = body(wanted or Accepted(), error.body(), error.code)
    answer.headers = error.headers
    return answer


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
    if served.view is not None:
        return served.view.shown(raw)
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
    return presented(request, served.printer, in_version(served, raw), now, status)


def presented(request: Request, printer: Printer, raw: bytes, now: float, status: int = 200) -> Response:
    """Also what is never stored: a scale, an answered question."""
    wanted = accepted(request)
    if wanted.as_kind == "Table":
        raw = render_stored_table(printer, [raw], include_object(request), _revision_of(raw), now)
    elif wanted.as_kind == METADATA:
        raw = partial_object_metadata(msgspec.json.decode(raw))
    return body(wanted, raw, status)


async def many(request: Request, served: Served, records: Sequence[Record], metadata: Document, now: float) -> Answer:
    """A list. The objects' bytes are joined as they are stored: nothing is decoded to be encoded again."""
    wanted = accepted(request)
    if wanted.as_kind == "Table":
        row, include = stored_row, include_object(request)
        rows = [row(served.printer, shown(served, record), include, now) async for record in in_turns(records)]
        return body(wanted, table_of(served.printer, rows, metadata))
    if wanted.as_kind == METADATA_LIST:
        items = [partial_metadata(shown(served, record)) async for record in in_turns(records)]
        return body(wanted, partial_object_metadata_list(items, metadata))
    chunks = _list_chunks(served, records, metadata)
    if sum(len(record.raw) for record in records) < STREAM_ABOVE:
        return body(wanted, b"".join(chunks))
    return Stream(lambda: _one_by_one(chunks), wanted.content_type)


async def in_turns(records: Iterable[Record]) -> AsyncIterator[Record]:
    """For whoever reads every object of a list: after each megabyte the others get their turn. By bytes and not by the clock, so
    that the same always happens in the same order. The records must be held already: the table may change meanwhile."""
    size = 0
    for record in records:
        size += len(record.raw) + SMALLEST
        if size > TURN_BYTES:
            size = 0
            await asyncio.sleep(0)
        yield record


def _list_chunks(served: Served, records: Sequence[Record], metadata: Document) -> Iterator[bytes]:
    """The body in pieces: a large list is never in memory as a whole, beside the objects that are there anyway."""
    resource = served.resource
    head = {"kind": resource.list_kind or f"{resource.kind}List", "apiVersion": resource.group_version, "metadata": metadata}
    yield msgspec.json.encode(head)[:-1] + b',"items":['
    item = _without_kind(served) if resource.builtin else shown
    items = (item(served, record) for record in records)
    separated = (b"," + raw if number else raw for number, raw in enumerate(items))
    yield from in_chunks(separated)
    yield b"]}\n"


class Gathering:
    """Pieces put together, as many as are worth sending at once; bounded in bytes, since each may be a megabyte."""

    __slots__ = ("_pieces", "_size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes, size: int) -> bytes | None:
        """The chunk that is full with it, if it is. `size` counts: of a piece that was made of more bytes than it has, those."""
        self._pieces.append(piece)
        self._size += size
        return self.rest() if self._size >= CHUNK_BYTES else None

    def rest(self) -> bytes:
        """What has come since the last chunk."""
        chunk = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return chunk


def in_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    gathering = Gathering()
    for piece in pieces:
        if chunk := gathering.add(piece, len(piece)):
            yield chunk
    if rest := gathering.rest():
        yield rest


def _without_kind(served: Served) -> Callable[[Served, Record], bytes]:
    """The items of a list of a built-in kind do not say what they are: the list does."""
    resource = served.resource
    head = msgspec.json.encode({"apiVersion": resource.group_version, "kind": resource.kind})[:-1] + b","
    start = len(head)

    def cut(raw: bytes) -> bytes:
        return b"{" + raw[start:] if raw.startswith(head) else raw

    return (lambda _, record: cut(record.raw)) if served.stored_here else (lambda _, record: cut(shown(served, record)))


async def _one_by_one(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


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
    if wanted.media_type == YAML and len(raw) > LONGEST_YAML:
        return Response(status, raw if len(raw) > STREAM_ABOVE else msgspec.json.format(raw, indent=2), "application/yaml")
    if wanted.media_type == YAML:
        text = yaml.safe_dump(msgspec.json.decode(raw), default_flow_style=False, sort_keys=False)
        return Response(status, text.encode(), "application/yaml")
    return Response(status, raw)
