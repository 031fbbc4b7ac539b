"""A resource made ready to be served: its schema compiled, its rules at hand, its place in the store known."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

from herder.api.problems import Problem
from herder.server.events import View
from herder.server.fields import FieldManager, FieldSet, reset_fields
from herder.server.resources import Resource
from herder.server.schema import Schema
from herder.server.selectable import NOTHING, Selectable
from herder.server.tables import Printer, printer_for

Document = dict[str, Any]


class Strategy(Protocol):
    """What is particular to a kind. Documents are changed in place; nothing here does I/O."""

    unconditional_update: bool
    """May an update leave out the resourceVersion?"""
    returns_deleted: bool
    """Does a DELETE that removes the object at once answer with the object?"""
    has_generation: bool
    graceful: bool
    """Does a deletion tell how long it takes, even if that is no time at all?"""
    status_alone: bool
    """Can the status be judged without the spec, and has no defaults of its own? Then the spec need not be read to write it."""

    renewed: bool
    """Is it patched again and again with nothing new but a time?"""

    def conform(self, obj: Document) -> str | None:
        """Brings what was read into shape; the sentence that says why it cannot be, if so."""
        ...

    def default(self, obj: Document) -> None: ...

    def default_status(self, obj: Document) -> None:
        """Of an object of which only the status is taken."""
        ...

    def prepare_create(self, obj: Document) -> None: ...

    def prepare_update(self, new: Document, old: Document) -> None: ...

    def prepare_status(self, new: Document, old: Document) -> None: ...

    def validate_create(self, obj: Document, typed: bool) -> list[Problem]: ...

    def validate_metadata(self, obj: Document) -> list[Problem]:
        """Of a new object whose other parts were judged already; only where `status_alone`."""
        ...

    def validate_update(self, new: Document, old: Document, typed: bool) -> list[Problem]: ...

    def grace_seconds(self, obj: Document, asked: int | None) -> int: ...

    def begin_deletion(self, obj: Document) -> None:
        """Mark what only the engine's housekeeping may undo, before the object counts as deleted."""
        ...

    def holds(self, obj: Document) -> list[str]:
        """What keeps a deleted object from going."""
        ...

    def prepare_finalize(self, new: Document, old: Document) -> None: ...


class Served:
    """One version of one kind. All versions of a kind share `table`; what is stored carries `storage_version`."""

    def __init__(
        self,
        resource: Resource,
        schema: Schema,
        strategy: Strategy,
        selectable: Selectable = NOTHING,
        storage_version: str = "",
        generation: int = 0,
        since: int = 0,
        deprecation: str = "",
        view: View | None = None,
        stored_as: Resource | None = None,
    ) -> None:
        self.resource = resource
        self.schema = schema
        self.strategy = strategy
        self.selectable = selectable
        # Where another kind is what is stored, and this one only another view of it.
        self.view = view
        self.spoken_of = stored_as or resource
        self.table = self.spoken_of.qualified
        self.storage_version = storage_version or self.spoken_of.group_version
        self.stored_here = self.storage_version == resource.group_version
        # Of the CRD that it was made from, and since when it is so.
        self.generation = generation
        self.since = since
        self.deprecation = deprecation
        # Set while the kind itself is being removed: nothing new may be made of it.
        self.terminating = False
        self._resets: dict[str, FieldSet] = {}

    @cached_property
    def printer(self) -> Printer:
        return printer_for(self.resource)

    @cached_property
    def fields(self) -> FieldManager:
        return FieldManager(self.schema)

    def from_stored(self, document: Document) -> Document:
        if self.view is not None:
            return self.view.read(document)
        document["apiVersion"] = self.resource.group_version
        return document

    def to_stored(self, document: Document) -> Document:
        if self.view is not None:
            return self.view.stored(document)
        document["apiVersion"] = self.storage_version
        return document

    def reset(self, subresource: str) -> FieldSet:
        """The fields that a write to this endpoint cannot touch."""
        found = self._resets.get(subresource)
        if found is None:
            resource = self.resource
            found = self._resets[subresource] = reset_fields(
                resource.group, resource.kind, subresource, has_status=resource.status, builtin=resource.builtin
            )
        return found

    def allows(self, verb: str) -> bool:
        return verb in self.resource.verbs
