"""What `kubectl get` shows: Table and PartialObjectMetadata answers, for built-in kinds and for CRDs."""

from herder.api.ages import human_duration
from herder.server.tables.columns import Printer
from herder.server.tables.printers import printer_for
from herder.server.tables.render import (
    IncludeObject,
    partial_metadata,
    partial_object_metadata,
    partial_object_metadata_list,
    render_stored_table,
    render_table,
    stored_row,
    table_of,
)

__all__ = [
    "IncludeObject",
    "Printer",
    "human_duration",
    "partial_metadata",
    "partial_object_metadata",
    "partial_object_metadata_list",
    "printer_for",
    "render_stored_table",
    "render_table",
    "stored_row",
    "table_of",
]
