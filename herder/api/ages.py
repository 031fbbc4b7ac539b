"""How long ago something was, as people read it: exactly the texts of Kubernetes."""

from __future__ import annotations

INVALID = "<invalid>"

MINUTE = 60
HOUR = 60 * MINUTE
DAY_HOURS = 24
YEAR_HOURS = 365 * DAY_HOURS


def human_duration(seconds: float) -> str:
    """Two or three significant figures: `45s`, `3m20s`, `90m`, `7h5m`, `2d3h`, `400d`, `3y12d`."""
    whole = int(seconds)
    if whole < -1:
        # Clocks of two machines may differ by a moment; more than that is a mistake.
        return INVALID
    if whole < 0:
        return "0s"
    if whole < 2 * MINUTE:
        return f"{whole}s"
    minutes = whole // MINUTE
    if minutes < 10:
        return _two(minutes, "m", whole % MINUTE, "s")
    if minutes < 180:
        return f"{minutes}m"
    return _hours_and_more(whole // HOUR, minutes % 60)


def _hours_and_more(hours: int, minutes: int) -> str:
    if hours < 8:
        return _two(hours, "h", minutes, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // DAY_HOURS
    if days < 8:
        return _two(days, "d", hours % DAY_HOURS, "h")
    if hours < 2 * YEAR_HOURS:
        return f"{days}d"
    if hours < 8 * YEAR_HOURS:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
