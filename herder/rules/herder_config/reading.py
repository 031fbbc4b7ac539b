"""One file of herder-config, read strictly: all of it is right and used, or none of it is, and a sentence says why.

What is written there is for the whole cluster, so a key that nobody reads is not passed over: whoever wrote it wanted something.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, get_args

import msgspec

from herder.api.problems import nearest, printable, quoted, shortened, shown
from herder.api.yaml_documents import YamlError, read_yaml

# Settings are some lines. A ConfigMap may hold a megabyte.
MOST_BYTES = 16 * 1024
# Of a value, and of what a parser says: enough to find it.
LONGEST_SHOWN = 100
MOST_TOLD = 5


class Configuration(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of what a file may say. Each field has a default, and a `Meta` whose description is the sentence "must be …"."""


class Unusable(ValueError):
    """What is wrong with a file, for a person."""


C = TypeVar("C", bound=Configuration)


def read_file(text: str, kind: type[C]) -> C:
    """Raises Unusable. An empty file says nothing, and leaves everything as it is built in."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise Unusable(f"it is larger than {MOST_BYTES} bytes; write only what is to be set, such as {example(kind())}")
    written = _mapping(text, kind)
    problems = list(_problems(written, kind))
    if problems:
        more = f"; and {len(problems) - MOST_TOLD} more" if len(problems) > MOST_TOLD else ""
        raise Unusable("; ".join(problems[:MOST_TOLD]) + more)
    try:
        return msgspec.convert(written, kind)
    except msgspec.ValidationError as error:
        # What holds for several fields together.
        raise Unusable(str(error)) from None


def example(configuration: Configuration) -> str:
    """As a person would write it, in one line."""
    written: dict[str, Any] = msgspec.to_builtins(configuration)
    return ", ".join(f"{key}: {_shown(value)}" for key, value in written.items())


def _mapping(text: str, kind: type[Configuration]) -> dict[str, Any]:
    doubled: list[str] = []
    try:
        written = read_yaml(text.encode(errors="replace"), doubled, aliases=False)
    except YamlError as error:
        said = " ".join(str(error).split()).replace(' in "<byte string>",', " at")
        said = shortened(printable(said), 3 * LONGEST_SHOWN)
        raise Unusable(f"it is not YAML that can be read: {said}; write for example {example(kind())}") from None
    if doubled:
        raise Unusable(f"{printable(shortened(doubled[0], LONGEST_SHOWN))}: say it once")
    if written is None:
        return {}
    if not isinstance(written, dict):
        raise Unusable(f"{_shown(written)} is no mapping of keys to values; write for example {example(kind())}")
    return written


def _problems(written: dict[str, Any], kind: type[Configuration]) -> Iterator[str]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key, value in written.items():
        field = fields.get(key)
        if field is None:
            yield f"unknown key {quoted(shortened(key, LONGEST_SHOWN))}: {_instead(key, tuple(fields))}"
            continue
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            yield f"{key}: {_shown(value)} is wrong: {_wanted(field, error)}, or left out for {_shown(field.default)}"


def _instead(key: str, known: tuple[str, ...]) -> str:
    near = nearest(key, known)
    return f"did you mean {near}?" if near else f"known are {', '.join(known)}"


def _wanted(field: msgspec.structs.FieldInfo, error: Exception) -> str:
    """What would be right, in our words; in msgspec's where the fault is deeper inside."""
    for one in get_args(field.type):
        if isinstance(one, msgspec.Meta) and one.description:
            return one.description
    return str(error)


def _shown(value: Any) -> str:
    return shortened(shown(value), LONGEST_SHOWN)
