"""Parts of times and durations."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable

from herder.server.schema.cel.errors import CelError
from herder.server.schema.cel.functions import function
from herder.server.schema.cel.values import SECOND, Duration, Timestamp

_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)\Z")


def _zone(name: str) -> datetime.tzinfo:
    offset = _OFFSET.match(name)
    if offset:
        minutes = int(offset[2]) * 60 + int(offset[3])
        return datetime.timezone(datetime.timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        raise CelError(f"unknown time zone {name}") from None


def _register(name: str, part: Callable[[datetime.datetime], int]) -> None:
    @function(f"timestamp.{name}() int", f"timestamp.{name}(string) int")
    def read(moment: Timestamp, zone: str = "UTC") -> int:
        return part(moment.moment().astimezone(datetime.UTC if zone == "UTC" else _zone(zone)))

    del read


_register("getFullYear", lambda moment: moment.year)
_register("getMonth", lambda moment: moment.month - 1)
_register("getDate", lambda moment: moment.day)
_register("getDayOfMonth", lambda moment: moment.day - 1)
_register("getDayOfWeek", lambda moment: moment.isoweekday() % 7)
_register("getDayOfYear", lambda moment: moment.timetuple().tm_yday - 1)
_register("getHours", lambda moment: moment.hour)
_register("getMinutes", lambda moment: moment.minute)
_register("getSeconds", lambda moment: moment.second)
_register("getMilliseconds", lambda moment: moment.microsecond // 1000)


def _whole(duration: Duration, unit: int) -> int:
    count = abs(duration.nanoseconds) // unit
    return -count if duration.nanoseconds < 0 else count


@function("duration.getHours() int")
def _hours(duration: Duration) -> int:
    return _whole(duration, 3600 * SECOND)


@function("duration.getMinutes() int")
def _minutes(duration: Duration) -> int:
    return _whole(duration, 60 * SECOND)


@function("duration.getSeconds() int")
def _seconds(duration: Duration) -> int:
    return _whole(duration, SECOND)


@function("duration.getMilliseconds() int")
def _milliseconds(duration: Duration) -> int:
    return _whole(duration, 1_000_000) % 1000
