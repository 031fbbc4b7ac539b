"""Fields that others hold, as kube-apiserver names them: kubectl prints these sentences, and people search for them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from herder.api.problems import MOST_SHOWN, shortened
from herder.server.fields.sets import SELF, FieldSet

Entry = dict[str, Any]


class Conflict(NamedTuple):
    manager: str
    """Who holds the field, in words: `"kubectl" using v1`."""
    field: str
    path: tuple[str, ...]


def conflicts_with(entry: Entry, fields: FieldSet) -> list[Conflict]:
    who = describe(entry)
    return [Conflict(who, shortened("".join(_text(element) for element in path)), path) for path in _ordered_paths(fields)]


def describe(entry: Entry) -> str:
    words = json.dumps(entry.get("manager", ""), ensure_ascii=False)
    if entry.get("subresource"):
        words += f" with subresource {json.dumps(entry['subresource'])}"
    if entry.get("operation") == "Update":
        words += f" using {entry.get('apiVersion', '')}"
    return words


def conflict_message(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].manager}: {conflicts[0].field}"
    fields: dict[str, list[str]] = {}
    for conflict in conflicts[:MOST_SHOWN]:
        fields.setdefault(conflict.manager, []).append(f"- {conflict.field}")
    lines = [line for manager, held in fields.items() for line in (f"conflicts with {manager}:", *held)]
    if len(conflicts) > MOST_SHOWN:
        lines.append(f"and {len(conflicts) - MOST_SHOWN} more")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _ordered_paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """At each level first what is held itself, then what is in it."""
    elements = sorted(element for element in fields if element != SELF)
    found = [(*prefix, element) for element in elements if not fields[element] or SELF in fields[element]]
    for element in elements:
        found += _ordered_paths(fields[element], (*prefix, element))
    return found


def _text(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "k:":
        keys: dict[str, Any] = msgspec.json.decode(rest)
        return f"[{','.join(f'{key}={_value(value)}' for key, value in keys.items())}]"
    return f"[={_value(msgspec.json.decode(rest))}]" if kind == "v:" else f".{rest}"


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
