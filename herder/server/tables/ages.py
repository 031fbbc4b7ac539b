"""How long ago something was, as people read it in a table: exactly the texts of Kubernetes."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from herder.api.ages import INVALID, human_duration

UNKNOWN = "<unknown>"

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")


def seconds_of(timestamp: str) -> float:
    """An RFC 3339 timestamp in seconds since 1970."""
    return datetime.fromisoformat(timestamp).timestamp()


def age(timestamp: Any, now: float) -> str:
    """The time since a timestamp of an object; `<unknown>` where there is none."""
    if not timestamp:
        return UNKNOWN
    try:
        return human_duration(now - datetime.fromisoformat(timestamp).timestamp())
    except (TypeError, ValueError):
        return INVALID


def strict_age(timestamp: str, now: float) -> str:
    """For values that a schema did not check: anything but an RFC 3339 timestamp is `<invalid>`."""
    if timestamp and timestamp != "null" and not _RFC3339.fullmatch(timestamp):
        return INVALID
    return age("" if timestamp == "null" else timestamp, now)


def as_seconds(now: float | datetime) -> float:
    return now.timestamp() if isinstance(now, datetime) else now
