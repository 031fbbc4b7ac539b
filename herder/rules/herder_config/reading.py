"""One file of herder-config, read strictly: all of it is right and used, or none of it is, and a sentence says why.

What is written there is for the whole cluster, so a key that nobody reads is not passed over: whoever wrote it wanted something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, get_args, get_origin

import msgspec

from herder.api.problems import nearest, printable, quoted, shortened, shown
from herder.api.yaml_documents import YamlError, read_yaml

# Settings are some lines. A ConfigMap may hold a megabyte.
MOST_BYTES = 16 * 1024
# Of a value, and of what a parser says: enough to find it.
LONGEST_SHOWN = 100
MOST_TOLD = 5
MOST_EXAMPLES = 3
_PARSE: Final = "parse"


class Configuration(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of what a file may say, and of the parts inside it. Each field has a default, and a `Meta` (`must_be`) whose
    description is the sentence "must be …". What holds for several fields together is said by `__post_init__`."""


def must_be(words: str, parse: Callable[[Any], object] | None = None, **limits: Any) -> msgspec.Meta:
    """What a field is to be. `parse`: raises ValueError for a value of the right type that is wrong all the same."""
    return msgspec.Meta(description=f"must be {words}", extra={_PARSE: parse} if parse is not None else None, **limits)


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
    """As a person would write it, in one line: what is not as built in. Where all is, some of that, to show how it is written."""
    fields = msgspec.structs.fields(configuration)
    written: dict[str, Any] = {field.encode_name: _builtin(getattr(configuration, field.name)) for field in fields}
    changed = [field.encode_name for field in fields if getattr(configuration, field.name) != field.default]
    known = [key for key, value in written.items() if value is not None]
    told = ", ".join(f"{key}: {_shown(written[key])}" for key in changed or known[:MOST_EXAMPLES])
    return told if changed or len(known) <= MOST_EXAMPLES else f"{told}, …"


def _builtin(value: Any) -> Any:
    """A part without what nobody wrote into it."""
    built = msgspec.to_builtins(value)
    if isinstance(built, dict):
        return {key: _builtin(inner) for key, inner in built.items() if inner is not None}
    return [_builtin(inner) for inner in built] if isinstance(built, list | tuple) else built


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


def _problems(written: dict[str, Any], kind: type[Configuration], inside: str = "") -> Iterator[str]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key, value in written.items():
        field, path = fields.get(key), f"{inside}{key}"
        if field is None:
            yield f"unknown key {quoted(shortened(path, LONGEST_SHOWN))}: {_instead(key, tuple(fields))}"
        else:
            yield from list(_problems_of_parts(value, field, path)) or _problems_of_value(value, field, path)


def _problems_of_parts(value: Any, field: msgspec.structs.FieldInfo, path: str) -> Iterator[str]:
    """Of a value that is a Configuration itself, or a list of such: what is wrong with it is told where it is."""
    kind, listed = _part_in(field.type)
    if kind is None:
        return
    for place, part in [(f"{path}[{at}]", one) for at, one in enumerate(_items(value))] if listed else [(path, value)]:
        if isinstance(part, dict):
            problems = list(_problems(part, kind, f"{place}."))
            yield from problems or ([f"{place}: {_shown(part)} is wrong: {fault}"] if (fault := _fault(part, kind)) else [])


def _problems_of_value(value: Any, field: msgspec.structs.FieldInfo, path: str) -> Iterator[str]:
    metas = [one for one in get_args(field.type) if isinstance(one, msgspec.Meta)]
    fault = _fault(value, field.type) or next((fault for meta in metas if (fault := _parsing_fault(value, meta))), "")
    if fault:
        wanted = next((meta.description for meta in metas if meta.description), fault)
        without = f", or left out for {_shown(field.default)}" if field.default is not None else ", or left out"
        yield f"{path}: {_shown(value)} is wrong: {wanted}{without}"


def _part_in(declared: Any) -> tuple[type[Configuration] | None, bool]:
    """The Configuration that a field holds, if it does; and whether it holds a list of them."""
    if isinstance(declared, type) and issubclass(declared, Configuration):
        return declared, False
    kind, listed = next((found for one in get_args(declared) if (found := _part_in(one))[0] is not None), (None, False))
    return kind, listed or get_origin(declared) is tuple


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _fault(value: Any, declared: Any) -> str:
    try:
        msgspec.convert(value, declared)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _parsing_fault(value: Any, meta: msgspec.Meta) -> str:
    parse = (meta.extra or {}).get(_PARSE)
    try:
        if parse is not None and value is not None:
            parse(value)
    except ValueError as error:
        return str(error) or "wrong"
    return ""


def _instead(key: str, known: tuple[str, ...]) -> str:
    near = nearest(key, known)
    return f"did you mean {near}?" if near else f"known are {', '.join(known)}"


def _shown(value: Any) -> str:
    return shortened(shown(value), LONGEST_SHOWN)
