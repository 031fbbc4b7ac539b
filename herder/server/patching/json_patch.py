"""RFC 6902: a list of operations, all of which apply or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.api.nesting import MOST_VALUES, values_in

MAX_OPERATIONS = 10_000
MOST_COPIED = 3 * 1024 * 1024
LONGEST_INDEX = 9
_ABSENT: Any = object()


class PatchError(ValueError):
    """The patch itself makes no sense."""


class PatchDoesNotFit(ValueError):
    """The patch makes sense, but not for this object: a path that is not there, a test that does not hold."""


def apply_json_patch(document: Any, patch: Any) -> Any:
    """Changes `document` in place and returns the result. On an error the document is in an undefined state: use a copy."""
    if not isinstance(patch, list):
        raise PatchError("a JSON patch must be a list of operations")
    copied = _Copied()
    for number, operation in enumerate(patch):
        if not isinstance(operation, dict):
            raise PatchError(f"operation {number} must be an object with op and path")
        op = operation.get("op")
        run = _OPERATIONS.get(op) if isinstance(op, str) else None
        if run is None:
            known = ", ".join(_OPERATIONS)
            raise PatchDoesNotFit(f"operation {number}: Unexpected kind: {op!r}; known are {known}")
        if op == "copy":
            copied.add(document, operation)
        document = run(document, operation)
    return document


class _Copied:
    """A few copies of copies would be more than fits into memory: what is copied in all is bounded, as in Kubernetes."""

    def __init__(self) -> None:
        self._bytes = 0
        self._values = 0

    def add(self, document: Any, operation: dict[str, Any]) -> None:
        raw = msgspec.json.encode(_find(document, _pointer(operation, "from")))
        self._bytes += len(raw)
        self._values += values_in(raw)
        if self._bytes > MOST_COPIED:
            raise PatchDoesNotFit(f"the copies of the patch are larger than {MOST_COPIED} bytes in all")
        if self._values > MOST_VALUES:
            raise PatchDoesNotFit(f"the copies of the patch hold more than {MOST_VALUES} values in all")


def _pointer(operation: dict[str, Any], field: str = "path") -> list[str]:
    text = operation.get(field)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        why = f"{field} must be a JSON pointer such as /metadata/labels/a, not {text!r}"
        raise PatchDoesNotFit(why) if isinstance(text, str) else PatchError(why)
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError(f"the operation {operation['op']!r} on {operation.get('path')!r} needs a value")
    return operation["value"]


def _shown(pointer: list[str]) -> str:
    return "/" + "/".join(pointer)


def _index(part: str, length: int, pointer: list[str]) -> int:
    """A place in a list of that length; negative ones are refused, as RFC 6902 says."""
    if not _is_index(part) or (len(part) > 1 and part[0] == "0") or int(part) >= length:
        raise PatchDoesNotFit(f"{_shown(pointer)}: there is no element {part} (the list has {length})")
    return int(part)


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) <= LONGEST_INDEX


def _step(node: Any, part: str, pointer: list[str]) -> Any:
    if isinstance(node, dict):
        if part in node:
            return node[part]
    elif isinstance(node, list):
        return node[_index(part, len(node), pointer)]
    raise PatchDoesNotFit(f"{_shown(pointer)}: there is no {part!r} on the way")


def _find(document: Any, pointer: list[str]) -> Any:
    for part in pointer:
        document = _step(document, part, pointer)
    return document


def _insert(document: Any, pointer: list[str], value: Any) -> Any:
    if not pointer:
        return value
    node, last = _find(document, pointer[:-1]), pointer[-1]
    if isinstance(node, dict):
        node[last] = value
    elif isinstance(node, list):
        node.insert(len(node) if last == "-" else _index(last, len(node) + 1, pointer), value)
    else:
        raise PatchDoesNotFit(f"{_shown(pointer)}: what is there is neither an object nor a list")
    return document


def _take(document: Any, pointer: list[str]) -> tuple[Any, Any]:
    """What was at the place, and the document without it."""
    if not pointer:
        return document, None
    node, last = _find(document, pointer[:-1]), pointer[-1]
    found = _step(node, last, pointer)
    if isinstance(node, dict):
        del node[last]
    else:
        del node[int(last)]
    return found, document


def _add(document: Any, operation: dict[str, Any]) -> Any:
    return _insert(document, _pointer(operation), _value(operation))


def _remove(document: Any, operation: dict[str, Any]) -> Any:
    return _take(document, _pointer(operation))[1]


def _replace(document: Any, operation: dict[str, Any]) -> Any:
    pointer, value = _pointer(operation), _value(operation)
    if not pointer:
        return value
    node, last = _find(document, pointer[:-1]), pointer[-1]
    if isinstance(node, dict):
        # RFC 6902 would refuse a key that is not there; Kubernetes adds it, and clients count on it.
        node[last] = value
    else:
        _step(node, last, pointer)
        node[int(last)] = value
    return document


def _move(document: Any, operation: dict[str, Any]) -> Any:
    source, pointer = _pointer(operation, "from"), _pointer(operation)
    if pointer[: len(source)] == source and pointer != source:
        raise PatchError(f"cannot move {_shown(source)} into itself")
    found, document = _take(document, source)
    return _insert(document, pointer, found)


def _copy(document: Any, operation: dict[str, Any]) -> Any:
    found = _find(document, _pointer(operation, "from"))
    return _insert(document, _pointer(operation), msgspec.json.decode(msgspec.json.encode(found)))


def _test(document: Any, operation: dict[str, Any]) -> Any:
    pointer = _pointer(operation)
    try:
        found = _find(document, pointer)
    except PatchDoesNotFit:
        found = _ABSENT
    wanted = operation.get("value")
    if not (found is _ABSENT and wanted is None) and not _same(found, wanted):
        raise PatchDoesNotFit(f"testing value {_shown(pointer)} failed")
    return document


def _same(left: Any, right: Any) -> bool:
    """Python calls True equal to 1; JSON does not."""
    return left is not _ABSENT and left == right and isinstance(left, bool) == isinstance(right, bool)


_OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
