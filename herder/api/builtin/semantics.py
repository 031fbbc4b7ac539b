"""Small tools that the rules for built-in kinds share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from herder.api.names import Complaints
from herder.api.problems import Problem, invalid

Document: TypeAlias = dict[str, Any]
Problems: TypeAlias = list[Problem]

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
IMMUTABLE: Final = "field is immutable"
# Where false says something else than nothing at all: Go has these as pointers. (Not `readOnly`: nearly everywhere it is none.)
_FLAGS: Final = frozenset(
    (
        *("automountServiceAccountToken", "shareProcessNamespace", "enableServiceLinks", "setHostnameAsFQDN", "hostUsers"),
        *("privileged", "runAsNonRoot", "readOnlyRootFilesystem", "allowPrivilegeEscalation", "hostProcess", "optional"),
        *("immutable", "suspend", "manualSelector", "allowVolumeExpansion", "controller", "blockOwnerDeletion"),
    )
)


def section(document: Mapping[str, Any], name: str) -> Document:
    """A part of a document for reading; an empty one where it is missing."""
    return document.get(name) or {}


def items(document: Mapping[str, Any], name: str) -> Sequence[Any]:
    return document.get(name) or ()


def ensured(document: Document, name: str) -> Document:
    """A part of a document for writing; made where it is missing."""
    found = document.get(name)
    if found is None:
        found = document[name] = {}
    return found


def refuse_names(complaints: Complaints, field: str, value: str, out: Problems) -> None:
    for complaint in complaints:
        out.append(invalid(field, value, complaint))


def refuse_negative(value: int | None, field: str, out: Problems) -> None:
    if value is not None and value < 0:
        out.append(invalid(field, value, NOT_NEGATIVE))


def refuse_change(new: Any, old: Any, field: str, out: Problems) -> None:
    if not same(new, old):
        out.append(invalid(field, "" if new is None and isinstance(old, str) else new, IMMUTABLE))


def same(one: Any, other: Any) -> bool:
    """Equal but for parts that say nothing: an empty list, map or text is the same as none at all, and most often false is."""
    if one == other:
        return True
    if isinstance(one, dict) or isinstance(other, dict):
        left, right = one or {}, other or {}
        if not isinstance(left, dict) or not isinstance(right, dict):
            return False
        return all(_same_field(name, left.get(name), right.get(name)) for name in {**left, **right})
    if isinstance(one, list) or isinstance(other, list):
        left, right = one or [], other or []
        if not isinstance(left, list) or not isinstance(right, list):
            return False
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return _is_empty(one) and _is_empty(other)


def _same_field(name: str, one: Any, other: Any) -> bool:
    return one == other if name in _FLAGS else same(one, other)


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value is False


def changed_names(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the parts in which two documents differ."""
    return sorted(name for name in {**one, **other} if not _same_field(name, one.get(name), other.get(name)))


def without_repeats(found: Iterable[Problem]) -> Problems:
    return list(dict.fromkeys(found))
