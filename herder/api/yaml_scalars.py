"""What a word of YAML means without quotes: as Go's YAML 1.1 reads it, which is what Kubernetes does.

That is neither YAML 1.2 nor what Python's reader does: `y` is a truth, `0o17` and `017` are fifteen, `08` and `1e3` are numbers,
and `1:30` is a text.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_WHOLE = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
# Whole numbers are written out up to here in JSON, whatever they were in YAML.
_LARGEST_PLAIN = 1e21
_TYPES: dict[str, tuple[type, ...]] = {"bool": (bool,), "int": (int,), "float": (int, float), "null": (type(None),)}


def plain_scalar(text: str) -> Any:
    """The value of a word without quotes and tag."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    number = _number(text if text[0] == "." else text.replace("_", ""))
    return text if number is None else number


def tagged_scalar(tag: str, text: str) -> Any:
    """The value of what is said to be of a type; ValueError where it is not."""
    if tag == "str":
        return text
    if tag == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode("latin-1")
        except binascii.Error as error:
            raise ValueError(f"it is no base64: {error}") from None
    value = plain_scalar(text)
    if not isinstance(value, _TYPES[tag]) or (isinstance(value, bool) and tag != "bool"):
        raise ValueError(f"it is no {tag}")
    return value


def _number(text: str) -> int | float | None:
    if _WHOLE.fullmatch(text):
        number = _whole(text)
        if _LEAST <= number <= _MOST:
            return number
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text)
    if math.isinf(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _LARGEST_PLAIN else value


def _whole(text: str) -> int:
    digits = text.lstrip("+-")
    # A zero in front means eight, in Go as in C; Python wants a letter for it.
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    number = int(digits, 8 if octal else 0)
    return -number if text[0] == "-" else number
