"""Fields that hold a number or a share of one: `2` or `"25%"`. In JSON and here: an int or a str."""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

from herder.api.integers import parse_int64
from herder.api.names import regex_complaint
from herder.api.problems import Problem, invalid, shown, type_invalid

IntOrPercent: TypeAlias = int | str

_PERCENT = re.compile(r"[0-9]+%")
PERCENT_RULE = regex_complaint("a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", "1%", "93%")
_MAX_INT32 = (1 << 31) - 1


def parse_int_or_percent(text: str) -> IntOrPercent:
    """What was typed: a number where it is one of 32 bits, else the text itself."""
    number = parse_int64(text)
    return number if number is not None and -_MAX_INT32 - 1 <= number <= _MAX_INT32 else text


def int_value(value: IntOrPercent) -> int:
    """The number itself; text that is not a number counts as 0."""
    return value if isinstance(value, int) else parse_int64(value) or 0


def is_percent(value: IntOrPercent) -> bool:
    return isinstance(value, str) and _PERCENT.fullmatch(value) is not None


def percent_of(value: IntOrPercent) -> int | None:
    """25 for `"25%"`; None for what is not a percentage."""
    return int(value[:-1]) if isinstance(value, str) and is_percent(value) else None


def scaled_value(value: IntOrPercent | None, total: int, round_up: bool) -> int:
    """A number as it is; a percentage as that share of `total`, rounded as asked. ValueError for other text."""
    if value is None:
        raise ValueError("nil value for IntOrString")
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    percent = parse_int64(value[:-1])
    if percent is None:
        raise ValueError(f"invalid value for IntOrString: invalid value {shown(value)}: not a whole number before the percent sign")
    share = float(percent) * float(total) / 100  # in floating point, as Kubernetes computes it
    return math.ceil(share) if round_up else math.floor(share)


def validate_int_or_percent(value: Any, field: str) -> list[Problem]:
    """A non-negative number or a percentage; nothing else."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return [type_invalid(field, value, "must be an integer or percentage (e.g '5%%')")]
    if isinstance(value, str):
        return [] if _PERCENT.fullmatch(value) else [invalid(field, value, PERCENT_RULE)]
    return [] if value >= 0 else [invalid(field, value, "must be greater than or equal to 0")]


def validate_at_most_hundred_percent(value: Any, field: str) -> list[Problem]:
    """More than all of something makes no sense."""
    percent = percent_of(value) if isinstance(value, int | str) else None
    return [invalid(field, value, "must not be greater than 100%")] if percent is not None and percent > 100 else []
