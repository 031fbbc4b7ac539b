"""Which class is meant when a claim names none."""

from __future__ import annotations

from herder.api.storage import DEFAULT_CLASS
from herder.server.store import Record, Store

CLASSES = "storageclasses.storage.k8s.io"
_MARK = DEFAULT_CLASS.encode()


def default_class(store: Store) -> Record | None:
    """The newest of those that call themselves the default, then the first by name, as the API server has it."""
    marked = [record for record in store.scan(CLASSES) if _MARK in record.raw and _is_default(record)]
    newest = max((_made(record) for record in marked), default="")
    return min((record for record in marked if _made(record) == newest), key=lambda record: record.name, default=None)


def _is_default(record: Record) -> bool:
    return (record.document()["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"


def _made(record: Record) -> str:
    return record.document()["metadata"]["creationTimestamp"]
