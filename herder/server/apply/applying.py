"""The decision of an apply: the object as it becomes, who owns what of it then, or with whom it conflicts."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.server.apply.conflicts import Conflict, conflicts_with
from herder.server.apply.last_applied import KUBECTL, allowed_by_last_applied, refresh_last_applied
from herder.server.apply.merging import merge
from herder.server.apply.owning import owned
from herder.server.apply.removing import given_up, remove
from herder.server.fields.managed import (
    STRIPPED,
    Entry,
    FieldManager,
    encoded_fields,
    fields_of,
    managed_fields_after_create,
    order_of,
    without_change,
    without_entries,
)
from herder.server.fields.sets import FieldSet, contains, difference, intersection, union, without

Document = dict[str, Any]
BEFORE_FIRST_APPLY = "before-first-apply"


class Applier(msgspec.Struct, frozen=True):
    """Who applies, through which endpoint and when. `reset`: what that endpoint does not write, and so nobody owns through it."""

    manager: str
    api_version: str
    now: str
    subresource: str = ""
    reset: FieldSet = {}

    def is_mine(self, entry: Entry) -> bool:
        """Whatever version it was applied in: an applier has one entry."""
        mine = ("Apply", self.manager, self.subresource)
        return (entry.get("operation"), entry.get("manager"), entry.get("subresource", "")) == mine


class Applied(msgspec.Struct):
    document: Document
    entries: list[Entry]
    conflicts: list[Conflict] = []
    # Something was removed: what lost all that was in it is null now.
    pruned: bool = False


def apply_new(config: Document, fields: FieldManager, applier: Applier) -> Applied:
    """A configuration of something that does not exist: it becomes the object. NotDivisible where a list makes no sense."""
    mine = difference(_owned(config, fields, applier), STRIPPED)
    entries = [_entry(applier, mine, applier.now)] if mine else []
    return Applied(dict(config), entries)


def apply(live: Document, config: Document, fields: FieldManager, applier: Applier, *, force: bool = False) -> Applied:
    """Nothing is changed in place. The document comes without managedFields, and shares what did not change."""
    entries = live.get("metadata", {}).get("managedFields") or []
    live = without_entries(live)
    if not entries:
        entries = _of_nobody(live, fields, applier)
    applied = _apply(live, config, fields, entries, applier, force)
    if applier.manager == KUBECTL:
        if applied.conflicts and (allowed := allowed_by_last_applied(live, fields)):
            left = [one for one in applied.conflicts if not contains(allowed, one.path)]
            applied = Applied(live, entries, left) if left else _apply(live, config, fields, entries, applier, True)
        if not applied.conflicts:
            refresh_last_applied(applied.document, config)
    return applied


def _apply(live: Document, config: Document, fields: FieldManager, entries: list[Entry], applier: Applier, force: bool) -> Applied:
    wanted = _owned(config, fields, applier)
    mine = difference(wanted, STRIPPED)
    last = next((entry for entry in entries if applier.is_mine(entry)), None)
    others = [entry for entry in entries if entry is not last]
    merged = merge(fields.shape, live, config)
    if last is not None and fields_of(last) != mine:
        merged = _pruned(merged, fields, fields_of(last), wanted, others)
    change = fields.compare(live, merged, applier.reset)
    written = union(change.added, change.modified)
    if written and not force:
        conflicts = _conflicts(others, written)
        if conflicts:
            return Applied(live, entries, conflicts)
    if written or change.removed:
        others = [left for entry in others if (left := without_change(entry, written, change.removed)) is not None]
    if mine:
        time = applier.now if merged != live else (last or {}).get("time")
        others.append(_renewed(last, applier, mine, time))
    return Applied(merged, sorted(others, key=order_of), pruned=bool(change.removed))


def _owned(config: Document, fields: FieldManager, applier: Applier) -> FieldSet:
    return without(owned(fields.shape, config), applier.reset)


def _of_nobody(live: Document, fields: FieldManager, applier: Applier) -> list[Entry]:
    """An object whose managers were never tracked, or were forgotten: what it has belongs to whoever was before."""
    entries = managed_fields_after_create(
        *(live, fields, BEFORE_FIRST_APPLY, applier.now), api_version=applier.api_version, reset=applier.reset
    )
    return [{**entry, "subresource": applier.subresource} if applier.subresource else entry for entry in entries]


def _pruned(merged: Document, fields: FieldManager, last: FieldSet, wanted: FieldSet, others: list[Entry]) -> Document:
    """Without what was applied last time, is not now, and is nobody else's."""
    gone = given_up(fields.shape, last, wanted)
    if not gone:
        return merged
    held = wanted
    for entry in others:
        held = union(held, fields_of(entry))
    gone = given_up(fields.shape, last, held)
    return remove(fields.shape, merged, gone) if gone else merged


def _conflicts(others: list[Entry], written: FieldSet) -> list[Conflict]:
    found: list[Conflict] = []
    for entry in sorted(others, key=_named):
        taken = intersection(fields_of(entry), written)
        if taken:
            found += conflicts_with(entry, taken)
    return found


def _named(entry: Entry) -> tuple[str, ...]:
    return tuple(str(entry.get(field, "")) for field in ("manager", "operation", "apiVersion", "subresource"))


def _renewed(last: Entry | None, applier: Applier, mine: FieldSet, time: str | None) -> Entry:
    if last is not None and last.get("apiVersion") == applier.api_version and fields_of(last) == mine:
        return {**last, "time": time} if time != last.get("time") and _keeps_time(applier) else last
    return _entry(applier, mine, time)


def _keeps_time(applier: Applier) -> bool:
    return applier.subresource != "scale"  # kube-apiserver forgets the time of these


def _entry(applier: Applier, mine: FieldSet, time: str | None) -> Entry:
    made: Entry = {"manager": applier.manager, "operation": "Apply", "apiVersion": applier.api_version}
    if time and _keeps_time(applier):
        made["time"] = time
    made |= {"fieldsType": "FieldsV1", "fieldsV1": encoded_fields(mine)}
    if applier.subresource:
        made["subresource"] = applier.subresource
    return made
