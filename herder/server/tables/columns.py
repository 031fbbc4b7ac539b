"""Columns that many tables share, and how to write one down briefly."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from herder.server.resources import Column
from herder.server.tables.ages import as_seconds

Row = Callable[[dict[str, Any], float], list[Any]]
Conditions = Callable[[dict[str, Any]], list[dict[str, str]] | None]
Decode = Callable[[bytes], dict[str, Any]]


class Printer(msgspec.Struct, frozen=True, eq=False):
    """How one kind is shown by `kubectl get`: the columns, and the cells of an object at a moment."""

    columns: tuple[Column, ...]
    row: Row
    conditions: Conditions | None = None
    decode: Decode = msgspec.json.decode
    """Reads as much of a stored object as the row needs."""

    def cells(self, obj: dict[str, Any], now: float | datetime) -> list[Any]:
        return self.row(obj, as_seconds(now))


NAME = Column("Name", description="Name of the object, unique in its namespace.", format="name")
AGE = Column("Age", description="Time since the object was created.")
CONTAINERS = Column("Containers", description="Names of the containers in the pod template.", priority=1)
IMAGES = Column("Images", description="Images of the containers in the pod template.", priority=1)
SELECTOR = Column("Selector", description="Labels of the pods that belong to it.", priority=1)


def text(name: str, description: str) -> Column:
    return Column(name, "string", description)


def integer(name: str, description: str) -> Column:
    return Column(name, "integer", description)


def boolean(name: str, description: str) -> Column:
    return Column(name, "boolean", description)


def wide(name: str, description: str) -> Column:
    """Shown by `-o wide` only."""
    return Column(name, "string", description, priority=1)


def created(obj: dict[str, Any]) -> Any:
    return obj["metadata"].get("creationTimestamp")


def name_of(obj: dict[str, Any]) -> str:
    return obj["metadata"].get("name", "")


def part(obj: dict[str, Any], *path: str) -> dict[str, Any]:
    """A nested object, empty where it is missing or null."""
    for key in path:
        obj = obj.get(key) or {}
    return obj
