"""Rules of roles, one by one and compiled, to ask them. Pure. (How they are compared: `comparing.py`.)"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple

import msgspec

ALL = "*"
Document = dict[str, Any]
Slot = tuple[str, str, str]
# What a rule may multiply to before its lists are asked one by one.
MOST_SLOTS = 1000


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


class _Wide(NamedTuple):
    """A rule whose lists multiply to more than is worth writing out."""

    verbs: frozenset[str]
    api_groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]

    def allows(self, slots: Iterable[Slot], name: str) -> bool:
        return (not self.names or name in self.names) and any(
            verb in self.verbs and group in self.api_groups and resource in self.resources for verb, group, resource in slots
        )


class Grants:
    """The rules of one role, ready to be asked. What is allowed is found by looking it up, never by going through the rules; but
    for those few rules whose lists multiply to very many slots."""

    __slots__ = ("_paths", "_prefixes", "_slots", "_wide")

    def __init__(self, rules: Iterable[Rule]) -> None:
        # The names that may be acted on; None is every name, and no name.
        self._slots: dict[Slot, set[str] | None] = {}
        self._wide: list[_Wide] = []
        self._paths: set[tuple[str, str]] = set()
        self._prefixes: dict[tuple[str, str], None] = {}
        for rule in rules:
            self._add_resources(rule)
            self._add_paths(rule)

    def _add_resources(self, rule: Rule) -> None:
        verbs, groups, resources = frozenset(rule.verbs), frozenset(rule.api_groups), frozenset(rule.resources)
        if len(verbs) * len(groups) * len(resources) > MOST_SLOTS:
            self._wide.append(_Wide(verbs, groups, resources, frozenset(rule.names)))
            return
        for slot in product(verbs, groups, resources):
            if not rule.names:
                self._slots[slot] = None
            elif (names := self._slots.setdefault(slot, set())) is not None:
                names.update(rule.names)

    def _add_paths(self, rule: Rule) -> None:
        for verb, path in product(frozenset(rule.verbs), frozenset(rule.paths)):
            if path.endswith(ALL):
                self._prefixes[verb, path.rstrip(ALL)] = None
            else:
                self._paths.add((verb, path))

    def allow(self, slots: Iterable[Slot], name: str) -> bool:
        """`slots`: see `slots_of`."""
        held = self._slots
        for slot in slots:
            if slot in held and ((names := held[slot]) is None or name in names):
                return True
        return bool(self._wide) and any(wide.allows(slots, name) for wide in self._wide)

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
