"""Defaults that no schema can state, written into a document in place. Doing it twice changes nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.api.defaulting.instance import default_instance
from herder.api.registry import INSTANCE, info_of

DEFAULTERS: dict[tuple[str, str], Callable[[dict[str, Any]], None]] = {(INSTANCE.group, INSTANCE.kind): default_instance}


def default(document: dict[str, Any]) -> None:
    """Completes an object of one of our kinds; other kinds, and those that the schema completes, stay as they are."""
    info = info_of(document)
    complete = DEFAULTERS.get((info.group, info.kind)) if info else None
    if complete:
        complete(document)
