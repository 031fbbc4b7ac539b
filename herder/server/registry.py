"""The set of resources that are served at this moment: the built-in ones, and those of the CRDs that are established."""

from __future__ import annotations

import functools
from collections.abc import Callable

from herder.server.builtin_schemas import components, schema_for
from herder.server.builtins import BUILTINS
from herder.server.events import CORE, EVENTS, NEW, NEW_GROUP
from herder.server.resource_metrics.kinds import MEASURED, measured_kind
from herder.server.resources import Resource
from herder.server.schema import Schema, compile_schema
from herder.server.selectable import BUILTIN, NOTHING
from herder.server.served import Served
from herder.server.strategies import BuiltinStrategy, EventStrategy

Place = tuple[str, str, str]


class Registry:
    def __init__(self) -> None:
        self._resources: dict[Place, Resource] = {_place(resource): resource for resource in (*BUILTINS, *MEASURED)}
        self._served: dict[Place, Served] = {}
        self._by_kind: dict[tuple[str, str], Place] = {}
        self._by_table: dict[str, Place] = {}
        self._changed: list[Callable[[], None]] = []
        self._index()

    def find(self, group: str, version: str, plural: str) -> Served | None:
        place = (group, version, plural)
        served = self._served.get(place)
        if served is None and place in self._resources:
            # Schemas are compiled when first used: a start does not wait for kinds that nobody asks for.
            served = self._served[place] = _builtin(self._resources[place])
        return served

    def by_kind(self, group: str, kind: str) -> Served | None:
        """A served version of a kind, as an ownerReference names it."""
        place = self._by_kind.get((group, kind))
        return self.find(*place) if place else None

    def by_table(self, table: str) -> Served | None:
        place = self._by_table.get(table)
        return self.find(*place) if place else None

    def resources(self) -> list[Resource]:
        return list(self._resources.values())

    def replace(self, group: str, plural: str, versions: list[Served]) -> None:
        """All versions of one CRD, at once; none takes it away."""
        for place in [place for place in self._resources if place[0] == group and place[2] == plural]:
            del self._resources[place]
            self._served.pop(place, None)
        for served in versions:
            place = _place(served.resource)
            self._resources[place] = served.resource
            self._served[place] = served
        self._index()
        for changed in self._changed:
            changed()

    def _index(self) -> None:
        self._by_kind = {(one.group, one.kind): place for place, one in self._resources.items()}
        self._by_table = {one.qualified: place for place, one in self._resources.items()}

    def on_change(self, changed: Callable[[], None]) -> None:
        self._changed.append(changed)


def _place(resource: Resource) -> Place:
    return (resource.group, resource.version, resource.plural)


@functools.cache
def _compiled(group: str, version: str, kind: str) -> Schema:
    """Once in a process, however many servers are in it: a simulation starts thousands of them, one after the other."""
    return compile_schema(schema_for(group, version, kind), components())


def _builtin(resource: Resource) -> Served:
    if resource.measured:
        return measured_kind(resource)
    schema = _compiled(resource.group, resource.version, resource.kind)
    if resource.plural == EVENTS:
        return _events(resource, schema)
    return Served(resource, schema, BuiltinStrategy(resource), BUILTIN.get(resource.qualified, NOTHING))


def _events(resource: Resource, schema: Schema) -> Served:
    """Both groups' events are those of the core group."""
    view = NEW if resource.group == NEW_GROUP else CORE
    core = next(one for one in BUILTINS if one.qualified == EVENTS)
    return Served(resource, schema, EventStrategy(resource, view), BUILTIN[resource.qualified], view=view, stored_as=core)
