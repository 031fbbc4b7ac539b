"""What a value may be: type, range, pattern, length, and the combinations of those, each as a problem with its path.

The sentences are those of Kubernetes, since people and programs read them: `spec.x in body must be of type integer: "string"`.
On an update a part that did not change is not complained about (ratcheting), so that a tightened schema blocks no one.
"""

from __future__ import annotations

from typing import Any

from herder.api import problems
from herder.api.problems import Problem, shown
from herder.server.same import same_json
from herder.server.schema.formats import STRING_FORMATS, string_format
from herder.server.schema.node import ABSENT, Node
from herder.server.schema.patterns import compile_pattern

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_CHECKED_FORMATS = frozenset({"int32", "int64", "float", "double", "date-time", *STRING_FORMATS})
_VALUE_FORMATS = {"integer": "int64", "number": "float64"}
# The whole object, which has no path: Kubernetes prints it so.
NO_PATH = "<nil>"
_LONGEST_SHOWN = 128
# Matching takes its time for each letter, in patterns that anybody may have to fit.
LONGEST_MATCHED = 512 * 1024


def json_type(value: Any) -> str:
    """The JSON name of a value's type. A whole number written as a float is a number, which may stand for an integer."""
    kind = type(value)
    if kind is str:
        return "string"
    if kind is dict:
        return "object"
    if kind is list:
        return "array"
    if kind is bool:
        return "boolean"
    if kind is int:
        return "integer"
    return "number" if kind is float else "null"


def check_value(value: Any, node: Node, path: str, out: list[Problem], old: Any = ABSENT) -> None:
    """Appends what is wrong with the value, and with everything in it."""
    if value is old:
        return  # as whatever did not change; most of an object, when its status is written
    start = len(out)
    if value is None:
        _check_null(node, path, out)
    else:
        _check_present(value, node, path, out, old)
    if len(out) > start and old is not ABSENT and same_json(value, old):
        del out[start:]


def _check_null(node: Node, path: str, out: list[Problem]) -> None:
    if node.types and not node.nullable:
        out.append(_wrong_type(path, node, "null"))
    if "enum" in node.raw:
        _check_enum(None, node, path, out)


def _check_present(value: Any, node: Node, path: str, out: list[Problem], old: Any) -> None:
    kind = json_type(value)
    if node.types and not _type_fits(value, kind, node):
        out.append(_wrong_type(path, node, kind))
    if node.any_of or node.one_of or node.all_of or node.not_:
        _check_combined(value, node, path, out, old)
    if kind == "string":
        _check_string(value, node, path, out)
    elif kind in ("integer", "number"):
        _check_number(value, node, path, out)
    elif kind == "array":
        _check_array(value, node, path, out, old)
    if "enum" in node.raw:
        _check_enum(value, node, path, out)
    if kind == "object":
        _check_object(value, node, path, out, old)


def _type_fits(value: Any, kind: str, node: Node) -> bool:
    if kind in node.types:
        return True
    if kind == "number":
        return "integer" in node.types and value.is_integer()
    return kind == "integer" and "number" in node.types


def _wrong_type(path: str, node: Node, kind: str) -> Problem:
    """Where a format narrows the type, Kubernetes names the formats instead of the types."""
    wanted, seen = ",".join(node.types), kind
    if node.format in _CHECKED_FORMATS and kind not in ("string", "array", "null"):
        wanted, seen = node.format, _VALUE_FORMATS.get(kind, "")
    return problems.type_invalid(path.removeprefix("."), seen, f"{path} in body must be of type {wanted}: {shown(seen)}")


def _check_enum(value: Any, node: Node, path: str, out: list[Problem]) -> None:
    allowed = node.raw["enum"]
    if not any(type(value) is type(one) and value == one for one in allowed):
        out.append(
            problems.not_supported(path.removeprefix("."), value, (one if isinstance(one, str) else shown(one) for one in allowed))
        )


def _check_string(value: str, node: Node, path: str, out: list[Problem]) -> None:
    raw, where = node.raw, path.removeprefix(".")
    if len(value) > raw.get("maxLength", len(value)):
        out.append(problems.too_long(where, raw["maxLength"]))
    elif len(value) < raw.get("minLength", 0):
        out.append(problems.invalid(where, value, f"{path} in body should be at least {raw['minLength']} chars long"))
    elif "pattern" in raw and len(value) > LONGEST_MATCHED:
        out.append(problems.too_long(where, LONGEST_MATCHED))
    elif "pattern" in raw and not compile_pattern(raw["pattern"]).matches(value):
        out.append(problems.invalid(where, value, f"{path} in body should match '{raw['pattern']}'"))
    fits = string_format(node.format) if node.types in ((), ("string",)) else None
    if fits is not None and not fits(value):
        out.append(problems.type_invalid(where, value, f"{path} in body must be of type {node.format}: {shown(value)}"))


def _check_number(value: int | float, node: Node, path: str, out: list[Problem]) -> None:
    raw, where = node.raw, path.removeprefix(".")
    if node.type == "integer" and len(node.types) == 1:
        _check_range(value, node, path, out)
    factor = raw.get("multipleOf")
    if factor and not _is_multiple(value, factor):
        out.append(problems.invalid(where, value, f"{path} in body should be a multiple of {_number(factor)}"))
    low = raw.get("minimum")
    if low is not None and (value < low or (raw.get("exclusiveMinimum") and value == low)):
        words = "greater than" if raw.get("exclusiveMinimum") else "greater than or equal to"
        out.append(problems.invalid(where, value, f"{path} in body should be {words} {_number(low)}"))
    high = raw.get("maximum")
    if high is not None and (value > high or (raw.get("exclusiveMaximum") and value == high)):
        words = "less than" if raw.get("exclusiveMaximum") else "less than or equal to"
        out.append(problems.invalid(where, value, f"{path} in body should be {words} {_number(high)}"))


def integer_range(node: Node) -> tuple[int, int]:
    return _INT32 if node.format == "int32" else _INT64


def _check_range(value: int | float, node: Node, path: str, out: list[Problem]) -> None:
    """Kubernetes says only that it is not of the format, and calls the field <nil>."""
    low, high = integer_range(node)
    if not low <= value <= high or not float(value).is_integer():
        out.append(problems.invalid(path.removeprefix("."), value, f"must be a whole number from {low} to {high}"))


def _is_multiple(value: int | float, factor: int | float) -> bool:
    if isinstance(value, int) and float(factor).is_integer():
        return value % int(factor) == 0
    quotient = 1 / factor * value if factor < 1 else value / factor
    return abs(quotient - round(quotient)) < 1e-9


def _number(value: int | float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e21 else str(value)


def _check_array(value: list[Any], node: Node, path: str, out: list[Problem], old: Any) -> None:
    raw, where = node.raw, path.removeprefix(".")
    if node.items is not None:
        before = list_map(old, node) if old is not ABSENT and node.list_type == "map" else {}
        for index, one in enumerate(value):
            previous = before.get(list_key(one, node), ABSENT) if before else ABSENT
            check_value(one, node.items, f"{path}[{index}]", out, previous)
    if len(value) < raw.get("minItems", 0):
        out.append(problems.invalid(where, len(value), f"{path} in body should have at least {raw['minItems']} items"))
    if len(value) > raw.get("maxItems", len(value)):
        out.append(problems.too_many(where, len(value), raw["maxItems"]))
    if raw.get("uniqueItems") and any(one in value[:index] for index, one in enumerate(value)):
        out.append(problems.invalid(where, "", f"{path} in body shouldn't contain duplicates"))


def list_key(item: Any, node: Node) -> tuple[Any, ...]:
    """What tells the items of a map-like list apart; a missing key stands for its default."""
    if not isinstance(item, dict) or node.items is None:
        return (ABSENT,)
    return tuple(_hashable(item.get(key, _key_default(node.items, key))) for key in node.map_keys)


def list_map(value: Any, node: Node) -> dict[tuple[Any, ...], Any]:
    if not isinstance(value, list):
        return {}
    found: dict[tuple[Any, ...], Any] = {}
    for one in value:
        found.setdefault(list_key(one, node), one)
    return found


def _key_default(items: Node, key: str) -> Any:
    child = items.properties.get(key)
    return None if child is None or child.default is ABSENT else child.default


def _hashable(value: Any) -> Any:
    return shown(value) if isinstance(value, (dict, list)) else value


def _check_object(value: dict[str, Any], node: Node, path: str, out: list[Problem], old: Any) -> None:
    raw, where = node.raw, path.removeprefix(".")
    if len(value) < raw.get("minProperties", 0):
        out.append(problems.invalid(where, len(value), f"{path} in body should have at least {raw['minProperties']} properties"))
    if len(value) > raw.get("maxProperties", len(value)):
        out.append(problems.too_many(where, len(value), raw["maxProperties"]))
    before = old if isinstance(old, dict) else {}
    for key, inner in value.items():
        child = node.properties.get(key)
        if child is not None:
            previous = ABSENT if not path and key in ("apiVersion", "kind") else before.get(key, ABSENT)
            check_value(inner, child, f"{path}.{key}" if path else key, out, previous)
        elif node.additional is not None:
            check_value(inner, node.additional, f"{path}.{key}", out, before.get(key, ABSENT))
    if not node.builtin:
        out.extend(problems.required(f"{path}.{key}".removeprefix(".")) for key in node.required if key not in value)


def _check_combined(value: Any, node: Node, path: str, out: list[Problem], old: Any) -> None:
    if node.any_of:
        _check_any(value, node.any_of, path, out, old)
    if node.one_of and not (node.builtin and node.types):
        _check_one(value, node.one_of, path, out, old)
    if node.all_of:
        _check_all(value, node.all_of, path, out, old)
    if node.not_ is not None and not _problems_of(value, node.not_, path, old):
        out.append(_combined(path, value, "must not validate the schema (not)"))


def _check_any(value: Any, choices: tuple[Node, ...], path: str, out: list[Problem], old: Any) -> None:
    failures: list[list[Problem]] = []
    for choice in choices:
        found = _problems_of(value, choice, path, old)
        if not found:
            return
        failures.append(found)
    out.append(_combined(path, value, "must validate at least one schema (anyOf)"))
    out.extend(min(failures, key=len))


def _check_one(value: Any, choices: tuple[Node, ...], path: str, out: list[Problem], old: Any) -> None:
    results = [_problems_of(value, choice, path, old) for choice in choices]
    valid = sum(1 for found in results if not found)
    if valid == 1:
        return
    words = "Found none valid" if valid == 0 else f"Found {valid} valid alternatives"
    out.append(_combined(path, value, f"must validate one and only one schema (oneOf). {words}"))
    if valid == 0:
        out.extend(min(results, key=len))


def _check_all(value: Any, choices: tuple[Node, ...], path: str, out: list[Problem], old: Any) -> None:
    results = [_problems_of(value, choice, path, old) for choice in choices]
    for found in results:
        out.extend(found)
    failed = sum(1 for found in results if found)
    if failed:
        words = ". None validated" if failed == len(results) else ""
        out.append(_combined(path, value, f"must validate all the schemas (allOf){words}"))


def _problems_of(value: Any, node: Node, path: str, old: Any) -> list[Problem]:
    found: list[Problem] = []
    _check_present(value, node, path, found, old)
    return found


def _combined(path: str, value: Any, detail: str) -> Problem:
    """Of several alternatives none is the field's own. Kubernetes names neither field nor value then."""
    text = shown(value)
    words = value if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return problems.invalid(path.removeprefix(".") or NO_PATH, words, detail)
