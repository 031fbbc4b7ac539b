"""Field ownership: sets of field paths, and `metadata.managedFields` kept by them.

fields = FieldManager(schema)                      # once for each kind and version
obj["metadata"]["managedFields"] = managed_fields_after_create(obj, fields, manager, now, reset=reset_fields(...))
"""

from herder.server.fields.managed import FieldManager, entries_before, managed_fields_after_create, managed_fields_after_update
from herder.server.fields.resets import reset_fields
from herder.server.fields.sets import FieldSet, contains, difference, intersection, of_paths, paths, union, without

__all__ = [
    "FieldManager",
    "FieldSet",
    "contains",
    "difference",
    "entries_before",
    "intersection",
    "managed_fields_after_create",
    "managed_fields_after_update",
    "of_paths",
    "paths",
    "reset_fields",
    "union",
    "without",
]
