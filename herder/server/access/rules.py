"""Rules of roles: one by one, to compare them, and compiled, to ask them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import msgspec

ALL = "*"
Document = dict[str, Any]
Slot = tuple[str, str, str]


class Rule(msgspec.Struct, frozen=True):
    """What may be done (verbs), to what: resources of groups, perhaps only those of some names, or paths."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @classmethod
    def read(cls, document: Document | None) -> Rule:
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(_texts((document or {}).get(field)) for field in fields))

    def document(self) -> Document:
        fields = {
            "apiGroups": self.api_groups,
            "nonResourceURLs": self.paths,
            "resourceNames": self.names,
            "resources": self.resources,
            "verbs": self.verbs,
        }
        return {field: list(values) for field, values in fields.items() if values}

    def __str__(self) -> str:
        """As people read it in a refusal."""
        fields = {
            "APIGroups": self.api_groups,
            "Resources": self.resources,
            "NonResourceURLs": self.paths,
            "ResourceNames": self.names,
            "Verbs": self.verbs,
        }
        return "{" + ", ".join(f"{field}:{quoted(values)}" for field, values in fields.items() if values) + "}"


def _texts(values: Any) -> tuple[str, ...]:
    """A null in a list of texts says nothing."""
    return tuple(value for value in values or () if isinstance(value, str))


def quoted(values: Iterable[str]) -> str:
    return "[" + " ".join(msgspec.json.encode(value).decode() for value in values) + "]"


def read_rules(documents: Iterable[Document | None] | None) -> tuple[Rule, ...]:
    return tuple(Rule.read(document) for document in documents or ())


class Grants:
    """The rules of one role, ready to be asked. What is allowed is found by looking it up, never by going through the rules."""

    __slots__ = ("_paths", "_prefixes", "_slots")

    def __init__(self, rules: Iterable[Rule]) -> None:
        # The names that may be acted on; None is every name, and no name.
        self._slots: dict[Slot, frozenset[str] | None] = {}
        self._paths: set[tuple[str, str]] = set()
        self._prefixes: list[tuple[str, str]] = []
        for rule in rules:
            self._add_resources(rule)
            self._add_paths(rule)

    def _add_resources(self, rule: Rule) -> None:
        names = frozenset(rule.names) or None
        for slot in product(rule.verbs, rule.api_groups, rule.resources):
            before = self._slots.get(slot, frozenset())
            self._slots[slot] = None if names is None or before is None else before | names

    def _add_paths(self, rule: Rule) -> None:
        for verb, path in product(rule.verbs, rule.paths):
            if path.endswith(ALL):
                self._prefixes.append((verb, path.rstrip(ALL)))
            else:
                self._paths.add((verb, path))

    def allow(self, slots: Iterable[Slot], name: str) -> bool:
        """`slots`: see `slots_of`."""
        held = self._slots
        for slot in slots:  # noqa: SIM110 (a generator would take twice as long)
            if slot in held and ((names := held[slot]) is None or name in names):
                return True
        return False

    def allow_path(self, verb: str, path: str) -> bool:
        if (verb, path) in self._paths or (ALL, path) in self._paths:
            return True
        return any(held in (verb, ALL) and path.startswith(prefix) for held, prefix in self._prefixes)


def slots_of(verb: str, group: str, resource: str, subresource: str) -> tuple[Slot, ...]:
    """Every way in which a rule can name this."""
    if subresource:
        resources = (f"{resource}/{subresource}", f"*/{subresource}", ALL)
    else:
        resources = (resource, ALL)
    return tuple(product((verb, ALL), (group, ALL), resources))


# --- comparing: does one set of rules hold everything of another? ----------------------------------------------------------------


def missing(held: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What of `wanted` is not in `held`, in the smallest pieces."""
    owners = tuple(held)
    return [piece for rule in wanted for piece in _pieces(rule) if not any(_covers(owner, piece) for owner in owners)]


def _pieces(rule: Rule) -> Iterable[Rule]:
    for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs):
        for names in [(name,) for name in rule.names] or [()]:
            yield Rule((verb,), (group,), (resource,), names)
    for path, verb in product(rule.paths, rule.verbs):
        yield Rule((verb,), paths=(path,))


def _covers(owner: Rule, piece: Rule) -> bool:
    if not (_has(owner.verbs, piece.verbs[0])):
        return False
    if piece.paths:
        return any(_covers_path(path, piece.paths[0]) for path in owner.paths)
    if not (_has(owner.api_groups, piece.api_groups[0]) and _covers_resource(owner.resources, piece.resources[0])):
        return False
    return not owner.names or (bool(piece.names) and piece.names[0] in owner.names)


def _has(held: tuple[str, ...], wanted: str) -> bool:
    return ALL in held or wanted in held


def _covers_resource(held: tuple[str, ...], wanted: str) -> bool:
    if _has(held, wanted):
        return True
    _, slash, subresource = wanted.partition("/")
    return bool(slash) and f"*/{subresource}" in held


def _covers_path(held: str, wanted: str) -> bool:
    return held == wanted or (held.endswith(ALL) and wanted.startswith(held.rstrip(ALL)))


def told(pieces: Iterable[Rule]) -> str:
    """Pieces that differ only in their verb are told as one, a line each."""
    verbs: dict[Rule, list[str]] = {}
    for piece in pieces:
        rest = msgspec.structs.replace(piece, verbs=())
        verbs.setdefault(rest if piece.resources else piece, []).extend(piece.verbs)
    return "\n".join(sorted(str(msgspec.structs.replace(rest, verbs=tuple(found))) for rest, found in verbs.items()))
