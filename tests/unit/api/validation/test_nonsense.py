"""Nonsense in every field of every kind of ours: each refusal names the field and the value, and says what would be right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from herder.api import registry
from herder.api.problems import DUPLICATE, FORBIDDEN, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID, Problem, shown
from herder.api.registry import KINDS, KindInfo
from herder.api.validation import problems_of
from tests.samples import sample
from tests.unit.api.validation.judging import Json, completed, document, openapi, schema_problems

Path = tuple[str | int, ...]
NONSENSE: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 1.5, [], {"a": {}}),
    *("", "a,b=c", "../../etc/shadow", "a\x00b", "a\nb", "ü", "-", "x" * 5000),
    *("64m", "-1", "1e400", "9999999Ei", "-5s", "99999999999h", "200%", "70000"),
)
# Words by which a sentence says what would be right; the first four are whole answers of Kubernetes.
RIGHT = (
    *("Required value", "Too long", "Too many", "Duplicate value", "must", "should", "supported values", "may not", "there is no"),
    *("it may have", "write M or Mi"),
    *("no port of an interface has this name", "no interface is on this network", "no volume uses it"),
)
# What Kubernetes adds to every refusal by a schema: it is about none of the fields.
NOTE = "some validation rules were not checked because the object was invalid"
# The machine inside a machine, and inside a pool, is that of an instance: once is enough.
WITHOUT = {
    registry.MACHINE.kind: ("template", "dataVolumeTemplates"),
    registry.POOL.kind: ("template",),
    registry.JOB.kind: ("reservationOptions",),
}


def _places(value: Any, path: Path) -> Iterator[Path]:
    """The path of everything in it, and of itself."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, (*path, index))


def _put(value: Any, path: Path, nonsense: Any) -> Any:
    """The same, with nonsense in one place."""
    if not path:
        return nonsense
    head, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {key: _put(inner, rest, nonsense) if key == head else inner for key, inner in value.items()}
    return [_put(inner, rest, nonsense) if index == head else inner for index, inner in enumerate(value)]


def _text(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in ("spec", *path)).removeprefix(".")


def _about(problem: Problem, place: str) -> bool:
    return problem.field == place or problem.field.startswith((f"{place}.", f"{place}["))


def _names_the_value(problem: Problem, nonsense: Any) -> bool:
    """The value itself or a part of it; its type where that is what is wrong; nothing where there is none, or far too much."""
    if problem.reason in (REQUIRED, TOO_LONG, TOO_MANY, FORBIDDEN, DUPLICATE, TYPE_INVALID):
        return True
    written = shown(nonsense)
    return written[:100] in problem.message or (isinstance(nonsense, dict | list) and " value: " in problem.message)


def _full(info: KindInfo) -> Json:
    spec = sample(openapi(info)["properties"]["spec"])
    return {name: value for name, value in spec.items() if name not in WITHOUT.get(info.kind, ())}


def _complaints(info: KindInfo, spec: Json, path: Path, nonsense: Any) -> list[str]:
    """What is wrong with the answers."""
    obj = completed(info, document(info, _put(spec, path, nonsense)))
    place = _text(path)
    found = schema_problems(info, obj)
    if not any(_about(problem, place) for problem in found):
        found = [*found, *problems_of(obj)]
    wrong: list[str] = []
    for problem in found:
        if problem.field == "<nil>" and NOTE not in problem.message:
            wrong.append(f"names no field: {problem}")
        if not _about(problem, place) or NOTE in problem.message:
            continue
        if "should match '" in problem.message or "must match the regular expression" in problem.message:
            wrong.append(f"answers with an expression: {problem}")
        if not _names_the_value(problem, nonsense):
            wrong.append(f"does not name {shown(nonsense)[:80]}: {problem}")
        if not any(words in problem.message for words in RIGHT):
            wrong.append(f"does not say what would be right: {problem}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("info", KINDS, ids=lambda info: info.kind)
def test_a_refusal_names_the_field_and_the_value_and_says_what_would_be_right(info: KindInfo) -> None:
    spec = _full(info)
    wrong = [one for path in _places(spec, ()) for nonsense in NONSENSE for one in _complaints(info, spec, path, nonsense)]
    assert wrong == [], "\n".join(dict.fromkeys(wrong))
