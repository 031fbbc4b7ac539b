"""The string formats that Kubernetes checks in custom resources. Other names are allowed and mean nothing."""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit

_UUID = "(?i)^[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{}[0-9a-f]{{3}}-?{}[0-9a-f]{{3}}-?[0-9a-f]{{12}}\\Z"
_DURATION = re.compile(r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+\Z")
_WORDS = re.compile(r"\d+\s*([A-Za-zµ]+)")
_WORD_UNITS = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")
_WORD_STARTS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:?\d\d)\Z")
_EMAIL = re.compile(r"(?:[^<>@]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)\Z")
_HOST_LABEL = r"[^\W_](?:(?:[^\W_]|-)*[^\W_])?"
_HOST = re.compile(rf"{_HOST_LABEL}(?:\.{_HOST_LABEL})*\Z")
_MAC = re.compile(r"(?i)(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4}(?:(?:[0-9a-f]{2}\1){2}|(?:[0-9a-f]{2}\1){14})?[0-9a-f]{2}\Z")
_MAC_DOTS = re.compile(r"(?i)[0-9a-f]{4}(?:\.[0-9a-f]{4}){2,3}\Z")
_SHORT_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_CARD = re.compile(
    r"(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})\Z"
)
_RGB_PART = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: compiled.match(value) is not None


def is_duration(value: str) -> bool:
    """Go's form (`1h30m`), or the wordy one (`5 days`)."""
    if value in ("0", "+0", "-0") or _DURATION.match(value):
        return True
    units = [unit.lower() for unit in _WORDS.findall(value)]
    return any(unit in _WORD_UNITS or unit.startswith(_WORD_STARTS) for unit in units)


def is_date_time(value: str) -> bool:
    if not _DATE_TIME.match(value):
        return False
    try:
        datetime.datetime.fromisoformat(f"{value[:10]}T{value[11:19]}")
    except ValueError:
        return False
    return True


def _is_date(value: str) -> bool:
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return len(value) == 10


def is_base64(value: str) -> bool:
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _without_leading_zeros(value: str) -> str:
    return re.sub(r"\b0+(?=\d)", "", value)


def _is_ipv4(value: str) -> bool:
    if "." not in value:
        return False
    return _is_address(_without_leading_zeros(value) if ":" not in value else value)


def _is_ipv6(value: str) -> bool:
    return ":" in value and "%" not in value and _is_address(value)


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return "%" not in value


def _is_cidr(value: str) -> bool:
    address, slash, bits = value.partition("/")
    if not slash or not bits.isascii() or not bits.isdigit() or "%" in address:
        return False
    try:
        ipaddress.ip_interface(f"{_without_leading_zeros(address) if ':' not in address else address}/{int(bits)}")
    except ValueError:
        return False
    return True


def _is_uri(value: str) -> bool:
    """A request URI: absolute, or a path from the root."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return False
    if any(one <= " " or one == "\x7f" for one in value) or re.search(r"%(?![0-9A-Fa-f]{2})", value):
        return False
    return value.startswith("/") or bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value) and parts.scheme)


def _is_hostname(value: str) -> bool:
    labels = value.split(".")
    return len(value) <= 255 and bool(_HOST.match(value)) and all(len(label) <= 63 for label in labels)


def _is_mac(value: str) -> bool:
    return _MAC.match(value) is not None or _MAC_DOTS.match(value) is not None


def _is_long_name(value: str) -> bool:
    return len(value) <= 253 and re.match(rf"{_SHORT_NAME}(\.{_SHORT_NAME})*\Z", value) is not None


def _is_short_name(value: str) -> bool:
    return len(value) <= 63 and re.match(rf"{_SHORT_NAME}\Z", value) is not None


def _is_card(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    if not _CARD.match(digits):
        return False
    doubled = [int(one) * (2 if index % 2 else 1) for index, one in enumerate(reversed(digits))]
    return sum(one - 9 if one > 9 else one for one in doubled) % 10 == 0


def _is_isbn10(value: str) -> bool:
    digits = re.sub(r"[\s-]+", "", value)
    if not re.match(r"(?:\d{9}X|\d{10})\Z", digits):
        return False
    return sum((index + 1) * (10 if one == "X" else int(one)) for index, one in enumerate(digits)) % 11 == 0


def _is_isbn13(value: str) -> bool:
    digits = re.sub(r"[\s-]+", "", value)
    return bool(re.match(r"\d{13}\Z", digits)) and sum(int(one) * (3 if i % 2 else 1) for i, one in enumerate(digits)) % 10 == 0


# By their name without dashes, as Kubernetes compares them.
STRING_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}\Z"),
    "uri": _is_uri,
    "email": lambda value: _EMAIL.match(value.strip()) is not None,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _matches(_UUID.format("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _matches(_UUID.format("3", "[0-9a-f]")),
    "uuid4": _matches(_UUID.format("4", "[89ab]")),
    "uuid5": _matches(_UUID.format("5", "[89ab]")),
    "isbn": lambda value: _is_isbn10(value) or _is_isbn13(value),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_card,
    "ssn": lambda value: len(value) == 11 and re.match(r"\d{3}[- ]?\d{2}[- ]?\d{4}\Z", value, re.ASCII) is not None,
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})\Z"),
    "rgbcolor": _matches(rf"rgb\({_RGB_PART},{_RGB_PART},{_RGB_PART}\)\Z"),
    "byte": is_base64,
    "password": lambda value: True,
    "date": _is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": _is_short_name,
    "k8slongname": _is_long_name,
}


def string_format(name: str) -> Callable[[str], bool] | None:
    return STRING_FORMATS.get(name.replace("-", "")) if name else None
