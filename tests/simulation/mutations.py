"""What people may write into one field after another, made from the kind's schema: the edges of what is right, and what is wrong.

As Acto does it: one field at a time, on an object that is right otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tests.samples import sample

Json = dict[str, Any]
Path = tuple[str | int, ...]
DEEPEST = 12
REMOVED = object()


class Mutation(msgspec.Struct, frozen=True):
    """Another value at one place of a spec. `valid` is what the schema of the field alone says: rules of the kind may say no."""

    path: Path
    what: str
    value: Any
    valid: bool

    def __str__(self) -> str:
        return f"{dotted(self.path)}: {self.what}"

    def applied(self, document: Json) -> Json:
        """A copy with the mutation in it."""
        copy: Json = msgspec.json.decode(msgspec.json.encode(document))
        at: Any = copy
        for step, following in zip(self.path, self.path[1:], strict=False):
            at = _step(at, step, following)
        if self.value is not REMOVED:
            _put(at, self.path[-1], self.value)
        elif isinstance(at, dict):
            at.pop(self.path[-1], None)
        return copy


def dotted(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def mutations(schema: Json, current: Any, path: Path = ("spec",), *, there: bool = True) -> Iterator[Mutation]:
    """Of a schema and of what stands there now (None where nothing does)."""
    yield from _wrong(schema, path)
    yield from _right(schema, current, path)
    if there:
        yield Mutation(path, "removed", REMOVED, True)
    if len(path) >= DEEPEST:
        return
    for step, inner in _inside(schema, current):
        value = _child(current, step)
        if value is None:
            yield Mutation((*path, step), "added", sample(inner), True)
        yield from mutations(inner, value, (*path, step), there=value is not None)


def _inside(schema: Json, current: Any) -> Iterator[tuple[str | int, Json]]:
    yield from (schema.get("properties") or {}).items()
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        yield next(iter(current), "a") if isinstance(current, dict) else "a", values
    items = schema.get("items")
    if isinstance(items, dict) and isinstance(current, list) and current:
        yield 0, items


def _wrong(schema: Json, path: Path) -> Iterator[Mutation]:
    if schema.get("x-kubernetes-preserve-unknown-fields") and "type" not in schema:
        return
    kind = schema.get("type")
    others: dict[str, Any] = {"string": "nonsense", "integer": -7, "boolean": True, "array": [[]], "object": {"no-such": {}}}
    fits = {"integer", "string"} if schema.get("x-kubernetes-int-or-string") else {kind}
    for name, value in others.items():
        if name not in fits:
            yield Mutation(path, f"{name} instead of {kind}", value, False)
    if kind == "number" or kind == "integer":
        yield from _outside(schema, path)
    if schema.get("enum"):
        yield Mutation(path, "not in the enum", "no-such-choice", False)
    if schema.get("maxLength") is not None:
        yield Mutation(path, "too long", "a" * (schema["maxLength"] + 1), False)
    if schema.get("maxItems") is not None:
        yield Mutation(path, "too many", [sample(schema["items"])] * (schema["maxItems"] + 1), False)
    if _is_spelled(schema):
        yield Mutation(path, "against its spelling", "\u0000 no such thing \u2028", False)


def _is_spelled(schema: Json) -> bool:
    """Whether a rule says what the text must look like; none lets NUL by."""
    return any(".matches(" in rule["rule"] for rule in schema.get("x-kubernetes-validations", ()))


def _outside(schema: Json, path: Path) -> Iterator[Mutation]:
    if "minimum" in schema:
        yield Mutation(path, "below the minimum", schema["minimum"] - 1, False)
    if "maximum" in schema:
        yield Mutation(path, "above the maximum", schema["maximum"] + 1, False)
    yield Mutation(path, "a fraction", 1.5, False)
    yield Mutation(path, "more than 64 bits", 2**70, False)


def _right(schema: Json, current: Any, path: Path) -> Iterator[Mutation]:
    for choice in schema.get("enum") or ():
        if choice != current:
            yield Mutation(path, f"the choice {choice}", choice, True)
    kind = schema.get("type")
    if kind == "integer":
        yield Mutation(path, "the least", schema.get("minimum", 0), True)
        yield Mutation(path, "the most", schema.get("maximum", 2**31 - 1), True)
    elif kind == "boolean":
        yield Mutation(path, "the other", not current, True)
    elif kind == "string" and not schema.get("enum"):
        yield Mutation(path, "empty", "", True)
        if schema.get("maxLength") and not _is_spelled(schema):
            yield Mutation(path, "the longest", "a" * schema["maxLength"], True)
    elif kind == "array":
        yield from _lists(schema, current or [], path)
    elif kind == "object":
        yield Mutation(path, "empty", {}, True)
        yield Mutation(path, "null", None, True)


def _lists(schema: Json, current: list[Any], path: Path) -> Iterator[Mutation]:
    yield Mutation(path, "empty", [], True)
    yield Mutation(path, "longer", [*current, sample(schema["items"])], True)
    if current:
        yield Mutation(path, "shorter", current[:-1], True)
        yield Mutation(path, "doubled", [*current, current[0]], True)
        yield Mutation(path, "turned round", current[::-1], True)


def _child(current: Any, step: str | int) -> Any:
    if isinstance(current, dict):
        return current.get(step)
    return current[step] if isinstance(current, list) and isinstance(step, int) and step < len(current) else None


def _step(at: Any, step: str | int, following: str | int) -> Any:
    """One level down, made where it is missing."""
    below = _child(at, step)
    if below is None or isinstance(below, dict) != isinstance(following, str):
        below = {} if isinstance(following, str) else []
        _put(at, step, below)
    return below


def _put(at: Any, step: str | int, value: Any) -> None:
    if isinstance(at, dict):
        at[step] = value
    elif isinstance(step, int):
        at[step : step + 1] = [value]
