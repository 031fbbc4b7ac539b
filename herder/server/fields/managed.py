"""`metadata.managedFields`: who last wrote which field. Kept as kube-apiserver keeps it, for creates, updates and patches."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.server.fields.sets import FieldSet, difference, intersection, of_paths, union, without
from herder.server.fields.shape import Change, Fields, compile_shape
from herder.server.schema.schema import Schema
from herder.server.sorted_json import encode_sorted

_META = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
# What nobody owns: it names the object, or the server sets it.
STRIPPED = of_paths(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _META)],
)
MOST_UPDATERS = 10
_ANCIENT = "ancient-changes"
Entry = dict[str, Any]


class FieldManager:
    """What is needed to keep the managedFields of one kind at one version. Made once, kept beside its schema."""

    def __init__(self, schema: Schema) -> None:
        self.shape: Fields = compile_shape(schema.root)

    def field_set(self, obj: dict[str, Any]) -> FieldSet:
        """Every path of an object, as one who created it would own it."""
        whole: FieldSet = {}
        self.shape.fill(obj, whole)
        return difference(whole, STRIPPED)

    def compare(self, old: dict[str, Any], new: dict[str, Any], reset: FieldSet) -> Change:
        """What changed from one object to the next, without what this endpoint does not write (`reset`)."""
        inside = Change()
        self.shape.compare(old, new, "", inside)
        change = Change()
        change.added = without(inside.added.get("", {}), reset)
        change.modified = without(inside.modified.get("", {}), reset)
        change.removed = without(inside.removed.get("", {}), reset)
        return change


def managed_fields_after_create(
    obj: dict[str, Any],
    fields: FieldManager,
    manager: str,
    now: str,
    *,
    api_version: str = "",
    reset: FieldSet | None = None,
    encoded: bool = False,
    known: FieldSet | None = None,
) -> list[Entry]:
    """The entries of a new object. `now` is RFC 3339 in seconds, `reset` what creating cannot write (the status).

    `encoded`: the sets come as msgspec.Raw, for an object that is about to be encoded anyway; that saves a third of the time.
    `known`: the paths of what the object comes without.
    """
    writer = _Writer(manager or "unknown", api_version or obj["apiVersion"], "", now, encoded)
    change = fields.compare({}, obj, reset or {})
    if known:
        change.added = {**change.added, **known}
    return _after(change, [], writer)


def managed_fields_after_update(
    old: dict[str, Any],
    new: dict[str, Any],
    fields: FieldManager,
    manager: str,
    now: str,
    *,
    api_version: str = "",
    subresource: str = "",
    reset: FieldSet | None = None,
    encoded: bool = False,
) -> list[Entry]:
    """The entries after an update or a patch (not an apply). Whoever sends an empty list gives the tracking up."""
    entries = entries_before(old, new, subresource)
    if not entries:
        return []
    writer = _Writer(manager or "unknown", api_version or new["apiVersion"], subresource, now, encoded)
    entries = _of_group(entries, api_version or new["apiVersion"])
    return _after(fields.compare(without_entries(old), without_entries(new), reset or {}), entries, writer)


def entries_before(old: dict[str, Any], new: dict[str, Any], subresource: str) -> list[Entry]:
    """Clients may write managedFields themselves, though not through a subresource; those who leave it out, or write what
    cannot be read, keep what was."""
    sent, before = (obj.get("metadata", {}).get("managedFields") for obj in (new, old))
    if sent is None or subresource or sent == before:
        return before or []
    if sent in ([], [{}]):
        return []
    return sent if all(_is_readable(entry) for entry in sent) else before or []


def _is_readable(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in ("Apply", "Update")
        and bool(entry.get("apiVersion"))
        and entry.get("fieldsType") == "FieldsV1"
        and _is_set(entry.get("fieldsV1") or {})
    )


def _is_set(fields: Any) -> bool:
    return isinstance(fields, dict) and all(_is_set(inner) for inner in fields.values())


def _of_group(entries: list[Entry], api_version: str) -> list[Entry]:
    """What was written through another group (events have two) is in words of that group, and is forgotten."""
    group = api_version.rpartition("/")[0]
    return [entry for entry in entries if entry.get("apiVersion", "").rpartition("/")[0] == group]


def _after(change: Change, entries: list[Entry], writer: _Writer) -> list[Entry]:
    written = union(change.added, change.modified)
    kept = [left for entry in entries if (left := without_change(entry, written, change.removed)) is not None]
    mine = difference(written, STRIPPED)
    if mine:
        kept = _with_mine(kept, mine, writer)
    return sorted(_capped(kept), key=order_of)


def without_entries(obj: dict[str, Any]) -> dict[str, Any]:
    meta = obj.get("metadata")
    if not meta or "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}}


def fields_of(entry: Entry) -> FieldSet:
    fields = entry.get("fieldsV1") or {}
    return msgspec.json.decode(fields) if isinstance(fields, msgspec.Raw) else fields


def without_change(entry: Entry, written: FieldSet, removed: FieldSet) -> Entry | None:
    """An entry without what another one wrote now, and without what is gone. None where nothing is left of it."""
    if not _may_share(entry, written, removed):
        return entry
    before = left = fields_of(entry)
    if written:
        taken = intersection(left, written)
        left = difference(left, taken) if taken else left
    if removed:
        gone = intersection(left, removed)
        left = difference(left, gone) if gone else left
    if not left:
        return None
    return entry if left is before else {**entry, "fieldsV1": left}


def _may_share(entry: Entry, written: FieldSet, removed: FieldSet) -> bool:
    """A set that is still bytes need not be read to see that it has nothing in common with others: it does not name where they
    begin. Names may be written in more than one way; where one might be, this does not count."""
    fields = entry.get("fieldsV1")
    if not isinstance(fields, msgspec.Raw):
        return True
    encoded = bytes(fields)
    if b"\\u" in encoded or b"\\/" in encoded or len(encoded) < len(b"{'f:x':{}}"):
        return True
    return any(msgspec.json.encode(element) in encoded for element in (*written, *removed))


def _with_mine(entries: list[Entry], mine: FieldSet, writer: _Writer) -> list[Entry]:
    rest: list[Entry] = []
    for entry in entries:
        if _key(entry) == writer.key:
            mine = union(mine, fields_of(entry))
        else:
            rest.append(entry)
    return [*rest, writer.entry(mine)]


class _Writer:
    """Who writes now, and how their entry looks."""

    __slots__ = ("encoded", "key", "now")

    def __init__(self, manager: str, api_version: str, subresource: str, now: str, encoded: bool) -> None:
        self.key = (manager, "Update", api_version, subresource)
        self.now = now
        self.encoded = encoded

    def entry(self, fields: FieldSet) -> Entry:
        manager, operation, api_version, subresource = self.key
        made: Entry = {"manager": manager, "operation": operation, "apiVersion": api_version}
        if subresource != "scale":  # kube-apiserver forgets the time of these
            made["time"] = self.now
        made["fieldsType"] = "FieldsV1"
        made["fieldsV1"] = encoded_fields(fields) if self.encoded else in_order(fields)
        if subresource:
            made["subresource"] = subresource
        return made


def encoded_fields(fields: FieldSet) -> msgspec.Raw:
    """For an entry that is about to be encoded anyway."""
    return msgspec.Raw(encode_sorted(fields))


def in_order(fields: FieldSet) -> FieldSet:
    """The same set with its elements sorted, as kube-apiserver writes them. Encoding in C is cheaper than sorting in Python."""
    return msgspec.json.decode(encode_sorted(fields))


def _key(entry: Entry) -> tuple[str, str, str, str]:
    return (entry.get("manager", ""), entry.get("operation", ""), entry.get("apiVersion", ""), entry.get("subresource", ""))


def order_of(entry: Entry) -> tuple[str, str, str, str, str]:
    manager, operation, api_version, subresource = _key(entry)
    return (operation, entry.get("time") or "", manager, api_version, subresource)


def _capped(entries: list[Entry]) -> list[Entry]:
    """At most ten who update: from the oldest on, those of one version are folded into one entry until there are ten."""
    updaters = sorted((one for one in entries if one.get("operation") == "Update"), key=_age)
    too_many = len(updaters) - MOST_UPDATERS
    if too_many <= 0:
        return entries
    folded: dict[str, Entry] = {}
    left: list[Entry] = []
    for entry in updaters:
        first = folded.get(entry.get("apiVersion", ""))
        if too_many <= 0:
            left.append(entry)
        elif first is None:
            folded[entry.get("apiVersion", "")] = entry
        else:
            folded[entry.get("apiVersion", "")] = _folded(first, entry)
            too_many -= 1
    return [*(one for one in entries if one.get("operation") != "Update"), *folded.values(), *left]


def _folded(first: Entry, entry: Entry) -> Entry:
    together = in_order(union(fields_of(first), fields_of(entry)))
    plain = {key: value for key, value in entry.items() if key != "subresource"}
    return {**plain, "manager": _ANCIENT, "fieldsV1": together}


def _age(entry: Entry) -> tuple[str, tuple[str, str, str, str]]:
    return (entry.get("time") or "", _key(entry))
