"""YAML as Kubernetes reads it, within bounds: how deep it may go, how much it may hold, and how much it may become by aliases.

Built from the parser's events, one after the other: the usual loader calls itself for each level, which a deep enough body turns
into a crash of the whole process, and a body of few lines can stand for more than fits into memory.
"""

from __future__ import annotations

import math
import re
from typing import Any

import yaml
from yaml import events

from herder.api.nesting import DEEPEST, MOST_VALUES, too_deep
from herder.api.problems import MOST_SHOWN, quoted, shortened
from herder.api.yaml_scalars import plain_scalar, tagged_scalar

# Far longer than any number.
LONGEST_NUMBER = 400
# Characters of all texts, each counted wherever it stands: an alias is three bytes, and may be a text of a megabyte. As much as a
# request may hold.
MOST_TEXT = 3 * 1024 * 1024
_NUMERAL = re.compile(r"[-+0-9._:eE]+")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAGS = "tag:yaml.org,2002:"
_MERGE = "<<"
_SCALARS = frozenset(("bool", "int", "float", "null", "str", "binary"))


class YamlError(ValueError):
    """It is not YAML, or not such that can be read here."""


class TooManyValues(YamlError):
    """It is YAML, and more of it than is read."""


# How many keys and values, and how many characters their texts have.
_Size = tuple[int, int]


class _Open:
    """A list or mapping that is being read. `key` is what the next value of a mapping belongs to."""

    __slots__ = ("anchor", "before", "key", "keys", "merged", "value", "waiting_for_value")

    def __init__(self, value: Any, anchor: str | None, before: _Size) -> None:
        self.value = value
        self.anchor = anchor
        self.before = before
        self.key: Any = None
        # As they were written: 1 and "1" are two keys in YAML, and one in JSON.
        self.keys: set[tuple[type, Any]] = set()
        self.waiting_for_value = False
        self.merged: list[Any] = []


class _Merge:
    pass


MERGE = _Merge()


def read_yaml(raw: bytes, doubled: list[str] | None = None, *, aliases: bool = True) -> Any:
    """The one document in `raw`; YamlError when there is not exactly one that is sound. To `doubled` is added a sentence for each
    key that a mapping has twice, with its line; of very many the first hundred. `aliases`: whether there may be any."""
    try:
        return _Reading([] if doubled is None else doubled, aliases).read(raw)
    except yaml.YAMLError as error:
        raise YamlError(str(error)) from None


class _Reading:
    def __init__(self, doubled: list[str], aliases: bool) -> None:
        self._doubled = doubled
        self._aliases = aliases
        self._line = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, _Size]] = {}
        self._values = 0
        self._text = 0
        self._documents: list[Any] = []

    def read(self, raw: bytes) -> Any:
        for event in yaml.parse(raw, Loader=_Loader):
            self._take(event)
        if len(self._documents) > 1:
            raise YamlError("more than one document")
        return self._documents[0] if self._documents else None

    def _take(self, event: Any) -> None:
        self._line = event.start_mark.line + 1
        if isinstance(event, events.ScalarEvent):
            text = len(event.value)
            self._count(1, text)
            self._add(self._scalar(event), event.anchor, (1, text))
        elif isinstance(event, events.MappingStartEvent | events.SequenceStartEvent):
            self._start(event)
        elif isinstance(event, events.CollectionEndEvent):
            self._end()
        elif isinstance(event, events.AliasEvent):
            self._alias(event.anchor)

    def _count(self, values: int, text: int) -> None:
        self._values += values
        self._text += text
        if self._values > MOST_VALUES:  # keys among them: YAML takes several times as long to read as JSON
            raise TooManyValues(f"it holds more than {MOST_VALUES} keys and values, or stands for so many by its aliases")
        if self._text > MOST_TEXT:
            raise YamlError(f"its texts are longer than {MOST_TEXT} characters together, or by what its aliases stand for")

    def _start(self, event: Any) -> None:
        if len(self._open) >= DEEPEST:
            raise YamlError(too_deep())
        before = (self._values, self._text)
        self._count(1, 0)
        if event.tag not in (None, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "!"):
            raise YamlError(f"the tag {event.tag} has no meaning in JSON")
        if event.anchor:
            self._anchors.pop(event.anchor, None)
        value: Any = {} if isinstance(event, events.MappingStartEvent) else []
        self._open.append(_Open(value, event.anchor, before))

    def _end(self) -> None:
        done = self._open.pop()
        for merged in reversed(done.merged):
            done.value = {**merged, **done.value}
        values, text = done.before
        self._add(done.value, done.anchor, (self._values - values, self._text - text))

    def _alias(self, name: str) -> None:
        if not self._aliases:
            raise YamlError(f"line {self._line}: the alias {name!r} may not be used here: write what it stands for")
        if name not in self._anchors:
            raise YamlError(f"the alias {name!r} stands for nothing that is whole")
        value, size = self._anchors[name]
        self._count(*size)
        self._add(value, None, size)

    def _scalar(self, event: Any) -> Any:
        text, tag = event.value, (event.tag or "!").removeprefix(_TAGS)
        if tag == "merge" or (tag == "!" and event.implicit[0] and text == _MERGE):
            return MERGE
        if tag == "!" and not event.implicit[0]:
            return text
        name = "" if tag == "!" else tag
        if name and name not in _SCALARS:
            raise YamlError(f"the tag {event.tag} has no meaning in JSON")
        if len(text) > LONGEST_NUMBER and name not in ("str", "binary"):
            return self._long(text, name)
        try:
            value = tagged_scalar(name, text) if name else plain_scalar(text)
        except ValueError as error:
            raise YamlError(f"{text[:40]!r} cannot be read: {error}") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise YamlError(f"{text} is no number that JSON has")
        return value

    def _long(self, text: str, tag: str) -> str:
        if tag or _NUMERAL.fullmatch(text):
            raise YamlError(f"{text[:40]!r}… is a number of more than {LONGEST_NUMBER} characters; put it in quotes")
        return text

    def _add(self, value: Any, anchor: str | None, size: _Size) -> None:
        if anchor:
            self._anchors[anchor] = (value, size)
        if not self._open:
            self._documents.append(_plain(value))
            return
        parent = self._open[-1]
        if isinstance(parent.value, list):
            parent.value.append(_plain(value))
        elif parent.waiting_for_value:
            parent.waiting_for_value = False
            self._put(parent, value)
        else:
            parent.waiting_for_value = True
            parent.key = value if value is MERGE else self._key(parent, value)

    def _key(self, parent: _Open, value: Any) -> str:
        key = _key(value)
        written = (type(value), value)
        if written in parent.keys and len(self._doubled) < MOST_SHOWN:
            shown = quoted(shortened(value)) if isinstance(value, str) else key
            self._doubled.append(f"line {self._line}: key {shown} already set in map")
        parent.keys.add(written)
        return key

    def _put(self, parent: _Open, value: Any) -> None:
        if parent.key is not MERGE:
            parent.value[parent.key] = _plain(value)
            return
        several = value if isinstance(value, list) else [value]
        if not all(isinstance(one, dict) for one in several):
            raise YamlError("only mappings can be merged by <<")
        parent.merged.extend(reversed(several))


def _plain(value: Any) -> Any:
    return "<<" if value is MERGE else value


def _key(value: Any) -> str:
    """Keys are text in JSON: numbers and truths as they are written there."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    raise YamlError("a key must be text")
