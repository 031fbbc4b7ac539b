"""Semantic versions, and the named formats of `format.dns1123Label().validate(...)`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from herder.api import names
from herder.server.schema.cel.errors import CelError
from herder.server.schema.cel.functions import function
from herder.server.schema.cel.values import NONE, Optional, register_type
from herder.server.schema.formats import string_format

_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\Z"
)


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    numbers: tuple[int, int, int]
    before: tuple[str, ...]

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[object, ...]:
        """A pre-release comes before its release; in it, numbers before words."""
        parts = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in self.before)
        return (self.numbers, not self.before, parts)


register_type(Version, "kubernetes.Semver")


@function("semver(string) semver")
def parse_version(text: str) -> Version:
    match = _VERSION.match(text)
    if match is None:
        raise CelError(f"'{text}' is not a semantic version")
    return Version((int(match[1]), int(match[2]), int(match[3])), tuple(match[4].split(".")) if match[4] else ())


@function("semver(string, bool) semver")
def _parse_loosely(text: str, normalize: bool) -> Version:
    """`v1.02` is 1.2.0 where that is asked for."""
    if not normalize:
        return parse_version(text)
    number, mark, rest = re.match(r"v?([^-+]*)([-+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    parts = [one.lstrip("0") or "0" if one.isdigit() else one for one in number.split(".")]
    return parse_version(".".join([*parts, "0", "0"][: max(3, len(parts))]) + mark + rest)


@function("isSemver(string) bool")
def _is_version(text: str) -> bool:
    return _VERSION.match(text) is not None


@function("isSemver(string, bool) bool")
def _is_loose_version(text: str, normalize: bool) -> bool:
    try:
        _parse_loosely(text, normalize)
    except CelError:
        return False
    return True


@function("semver.isGreaterThan(semver) bool")
def _greater(one: Version, other: Version) -> bool:
    return one > other


@function("semver.isLessThan(semver) bool")
def _less(one: Version, other: Version) -> bool:
    return one < other


@function("semver.compareTo(semver) int")
def _compare(one: Version, other: Version) -> int:
    return (one > other) - (one < other)


@function("semver.major() int")
def _major(one: Version) -> int:
    return one.numbers[0]


@function("semver.minor() int")
def _minor(one: Version) -> int:
    return one.numbers[1]


@function("semver.patch() int")
def _patch(one: Version) -> int:
    return one.numbers[2]


@dataclass(frozen=True, slots=True)
class NamedFormat:
    name: str


register_type(NamedFormat, "kubernetes.NamedFormat")


def _known(name: str) -> Callable[[str], list[str]]:
    fits = string_format(name)
    assert fits is not None
    return lambda value: [] if fits(value) else [f"does not match the format {name}"]


_FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": lambda value: list(names.dns_label(value)),
    "dns1123Subdomain": lambda value: list(names.dns_subdomain(value)),
    "dns1035Label": lambda value: list(names.dns_1035_label(value)),
    "qualifiedName": lambda value: list(names.qualified_name(value)),
    "dns1123LabelPrefix": lambda value: list(names.name_is_label(value, True)),
    "dns1123SubdomainPrefix": lambda value: list(names.name_is_subdomain(value, True)),
    "dns1035LabelPrefix": lambda value: list(names.name_is_1035_label(value, True)),
    "labelValue": lambda value: list(names.label_value(value)),
    "uri": _known("uri"),
    "uuid": _known("uuid"),
    "byte": _known("byte"),
    "date": _known("date"),
    "datetime": _known("datetime"),
}


def _register(name: str) -> None:
    value = NamedFormat(name)
    function(f"format::{name}() format")(lambda: value)


for _name in _FORMATS:
    _register(_name)


@function("format::named(string) optional(format)")
def _named(name: str) -> Optional:
    return Optional(True, NamedFormat(name)) if name in _FORMATS else NONE


@function("format.validate(string) optional(list(string))")
def _validate(named: NamedFormat, value: str) -> Optional:
    complaints = _FORMATS[named.name](value)
    return Optional(True, complaints) if complaints else NONE
