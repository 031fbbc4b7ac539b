"""All functions, gathered: importing a library registers what is in it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from herder.server.schema.cel.values import Duration, Timestamp
from herder.server.schema.patterns import compile_pattern

_LIBRARIES = ("operators", "strings", "collections", "times", "quantities", "network", "versions")

# What can be known to be wrong before any object comes: which argument, if it is a string in the expression, must be what.
LITERAL_CHECKS: dict[str, tuple[int, Callable[[str], Any]]] = {
    ".matches": (1, compile_pattern),
    "matches": (1, compile_pattern),
    ".find": (1, compile_pattern),
    ".findAll": (1, compile_pattern),
    "duration": (0, Duration.parse),
    "timestamp": (0, Timestamp.parse),
}


def load() -> None:
    for name in _LIBRARIES:
        import_module(f"herder.server.schema.cel.{name}")
