"""Answers in the shapes of meta.k8s.io: Table for people, PartialObjectMetadata for those who only need names and owners.

Objects are spliced into a table as the bytes that were stored; nothing is encoded twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import msgspec

from herder.server.tables.ages import as_seconds
from herder.server.tables.columns import Printer

META_V1 = "meta.k8s.io/v1"
PARTIAL = "PartialObjectMetadata"
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

IncludeObject = Literal["None", "Metadata", "Object"]

_encode = msgspec.json.Encoder().encode


class Partial(msgspec.Struct, frozen=True, gc=False):
    kind: str
    apiVersion: str
    metadata: dict[str, Any] | msgspec.Raw


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    metadata: msgspec.Raw


_open_envelope = msgspec.json.Decoder(_Envelope).decode


class TableRow(msgspec.Struct, gc=False):
    cells: list[Any]
    conditions: list[dict[str, str]] | msgspec.UnsetType
    object: Any


class _Column(msgspec.Struct, frozen=True, gc=False):
    name: str
    type: str
    format: str
    description: str
    priority: int


class _Table(msgspec.Struct):
    kind: str
    apiVersion: str
    metadata: dict[str, Any]
    columnDefinitions: list[_Column] | None
    rows: list[TableRow]


class _PartialList(msgspec.Struct):
    kind: str
    apiVersion: str
    metadata: dict[str, Any]
    items: list[Partial]


def render_table(
    printer: Printer,
    rows: Iterable[tuple[bytes, dict[str, Any]]],
    include_object: IncludeObject,
    metadata: dict[str, Any],
    now: float | datetime,
    with_columns: bool = True,
    api_version: str = META_V1,
) -> bytes:
    """A Table of a list, of one object, or of a watch event (of which only the first carries the columns).

    `metadata` is the list's (resourceVersion, continue, remainingItemCount), or the resourceVersion of the one object.
    """
    seconds = as_seconds(now)
    shown = [_row(printer, obj, seconds, _included(raw, obj, include_object, api_version)) for raw, obj in rows]
    return table_of(printer, shown, metadata, with_columns, api_version)


def render_stored_table(
    printer: Printer,
    stored: Iterable[bytes],
    include_object: IncludeObject,
    metadata: dict[str, Any],
    now: float | datetime,
    with_columns: bool = True,
    api_version: str = META_V1,
) -> bytes:
    """The same from stored bytes alone: only what the table shows is decoded, one object at a time."""
    seconds = as_seconds(now)
    shown = [stored_row(printer, raw, include_object, seconds, api_version) for raw in stored]
    return table_of(printer, shown, metadata, with_columns, api_version)


def stored_row(printer: Printer, raw: bytes, include_object: IncludeObject, now: float, api_version: str = META_V1) -> TableRow:
    """One object's row, for a list that is rendered in pieces."""
    obj = printer.decode(raw)
    return _row(printer, obj, now, _included_raw(raw, obj, include_object, api_version))


def table_of(
    printer: Printer,
    rows: list[TableRow],
    metadata: dict[str, Any],
    with_columns: bool = True,
    api_version: str = META_V1,
) -> bytes:
    columns = [_Column(one.name, one.type, one.format, one.description, one.priority) for one in printer.columns]
    return _encode(_Table("Table", api_version, metadata, columns if with_columns else None, rows))


def _row(printer: Printer, obj: dict[str, Any], now: float, included: Any) -> TableRow:
    conditions = (printer.conditions(obj) if printer.conditions else None) or msgspec.UNSET
    return TableRow(printer.row(obj, now), conditions, included)


def _included(raw: bytes, obj: dict[str, Any], include: IncludeObject, api_version: str) -> Any:
    if include == "Object":
        return msgspec.Raw(raw)
    return Partial(PARTIAL, api_version, obj["metadata"]) if _shows_metadata(obj, include) else None


def _included_raw(raw: bytes, obj: dict[str, Any], include: IncludeObject, api_version: str) -> Any:
    if include == "Object":
        return msgspec.Raw(raw)
    return Partial(PARTIAL, api_version, _open_envelope(raw).metadata) if _shows_metadata(obj, include) else None


def _shows_metadata(obj: dict[str, Any], include: IncludeObject) -> bool:
    # The end of a watch's initial events is told by an annotation, which a client must see even if it wants no objects.
    return include == "Metadata" or INITIAL_EVENTS_END in (obj["metadata"].get("annotations") or ())


def partial_object_metadata(obj: dict[str, Any], api_version: str = META_V1) -> bytes:
    return _encode(Partial(PARTIAL, api_version, obj["metadata"]))


def partial_metadata(raw: bytes, api_version: str = META_V1) -> Partial:
    """One object's metadata as it is stored, for a list that is rendered in pieces."""
    return Partial(PARTIAL, api_version, _open_envelope(raw).metadata)


def partial_object_metadata_list(items: list[Partial], metadata: dict[str, Any], api_version: str = META_V1) -> bytes:
    return _encode(_PartialList("PartialObjectMetadataList", api_version, metadata, items))
