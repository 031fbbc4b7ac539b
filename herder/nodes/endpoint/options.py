"""What of a log is wanted, as kubectl asks for it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from herder.api.integers import parse_int64

# A guest writes bytes to a serial port: nobody noted when each came.
_NO_TIMES = "a guest's log has no times; ask for the last lines with tailLines (kubectl logs --tail)"


class Unanswerable(Exception):
    """The question makes no sense here; the sentence says why."""


class LogOptions(msgspec.Struct, frozen=True):
    follow: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


def log_options(query: Mapping[str, str]) -> LogOptions:
    """Raises `Unanswerable`."""
    if _flag(query, "previous"):
        raise Unanswerable("previous: a guest runs once in its pod, so there is no log of an earlier one")
    for name in ("sinceSeconds", "sinceTime"):
        if query.get(name):
            raise Unanswerable(f"{name}: {_NO_TIMES}")
    if _flag(query, "timestamps"):
        raise Unanswerable(f"timestamps: {_NO_TIMES}")
    return LogOptions(_flag(query, "follow"), _count(query, "tailLines", 0), _count(query, "limitBytes", 1))


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "") not in ("", "false", "0", "False", "f", "F", "FALSE")


def _count(query: Mapping[str, str], name: str, least: int) -> int | None:
    text = query.get(name)
    if not text:
        return None
    number = parse_int64(text)
    if number is None or number < least:
        raise Unanswerable(f"{name}: {text[:40]!r}: should be a whole number of at least {least}")
    return number
