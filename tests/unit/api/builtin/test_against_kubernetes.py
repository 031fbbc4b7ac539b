"""What our rules make of an object against what the real API server's code makes of it.

Every field of an ordinary object of every kind is spoilt in several ways, one at a time. Both sides must store the same object, or
refuse it for the same reasons in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from herder.api import builtin

from ..oracle import Oracle, running_oracle
from .examples import example, group_and_kind, names_of_examples, spoiled
from .spoilings import LINES, UPDATES, spoilings

Path = tuple[str | int, ...]
SPOILED: tuple[Any, ...] = (None, "", "-bad-", "UPPER", -1, 70000, "x" * 300, {}, [], True, "a/b/c", "..")
# Set by the server from its clock, or shown to nobody.
NOT_COMPARED = ("metadata.uid", "metadata.creationTimestamp", "status.daemonEndpoints", "status.lastPhaseTransitionTime")
# Go reads an array of numbers as bytes, and makes nothing of `items` that are no schema, where we refuse to read them.
# Of the types of metrics we name the one that we have.
DIFFERENT = re.compile(
    r"(data/c|binaryData/b) \[\]|.*/conditions/items (\[\]|\".*\"|-1|70000|true)|spec/metrics/\d( \{\}|/type (null|\".*\"))"
)
# In an update: name and namespace come from the address of the request; these values are shown in Go's own way; and the hostname
# label of a volume may change from its beta name, which is looked for in an odd way.
DIFFERENT_IN_UPDATES = re.compile(r"metadata .*|metadata/(name|namespace) .*|(eventTime|regarding) null|.*/key (null|\"\")")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    yield from running_oracle("oracle/objects", slow_to_build=True)


def paths(part: Any, path: Path = ()) -> Iterator[Path]:
    inner: list[tuple[str | int, Any]] = []
    if isinstance(part, dict):
        inner = list(part.items())
    elif isinstance(part, list):
        inner = list(enumerate(part))
    for step, value in inner:
        yield (*path, step)
        yield from paths(value, (*path, step))


def spoilt(name: str, path: Path, value: Any) -> dict[str, Any]:
    obj = example(name)
    part: Any = obj
    for step in path[:-1]:
        part = part[step]
    if value is None:
        del part[path[-1]]
    else:
        part[path[-1]] = copied(value)
    return obj


def copied(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def without_nothing(part: Any) -> Any:
    """Without what says nothing: Go leaves out some empty values and writes others."""
    if isinstance(part, dict):
        kept = {name: without_nothing(value) for name, value in part.items()}
        return {name: value for name, value in kept.items() if value not in (None, {}, [], "")}
    return [without_nothing(value) for value in part] if isinstance(part, list) else part


def comparable(stored: dict[str, Any]) -> Any:
    for dotted in NOT_COMPARED:
        section, name = dotted.split(".")
        (stored.get(section) or {}).pop(name, None)
    if stored["kind"] == "PersistentVolumeClaim":
        stored.pop("status", None)  # its phase is filled in when it is read
    return without_nothing(stored)


def plain(message: str) -> str:
    """Only the first line, and without objects: Kubernetes shows its internal structs."""
    return re.sub(r"^(Invalid|Unsupported|Duplicate) value: [\[{].*[\]}]", r"\1 value: …", message.split("\n")[0])


def ours(obj: dict[str, Any], old: dict[str, Any] | None) -> Any:
    group, kind = group_and_kind(obj)
    if builtin.conform(group, kind, obj) is not None:
        return "unreadable"
    builtin.default(group, kind, obj)
    if old is None:
        builtin.prepare_for_create(group, kind, obj)
        problems = builtin.validate_create(group, kind, obj)
    else:
        builtin.prepare_for_update(group, kind, obj, old)
        problems = builtin.validate_update(group, kind, obj, old)
    if problems:
        return {(one.field, one.reason, plain(one.message)) for one in problems}
    return comparable(obj)


def theirs(said: dict[str, Any]) -> Any:
    if "unreadable" in said:
        return "unreadable"
    if "refused" in said:
        causes = said["refused"]["details"]["causes"]
        return {(one.get("field", ""), one.get("reason", ""), plain(one["message"])) for one in causes}
    return comparable(said["stored"])


def cases(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "as it is", example(name)
    for path in paths(example(name)):
        if path[0] in ("apiVersion", "kind"):
            continue
        for value in SPOILED:
            label = f"{'/'.join(map(str, path))} {msgspec.json.encode(value).decode()}"
            if not DIFFERENT.fullmatch(label):
                yield label, spoilt(name, path, value)


@pytest.mark.slow
@pytest.mark.parametrize("name", names_of_examples())
def test_a_new_object_is_stored_or_refused_alike(oracle: Oracle, name: str) -> None:
    labels, objects = zip(*cases(name), strict=True)
    answers = oracle.ask([{"object": obj} for obj in objects])
    for label, obj, said in zip(labels, objects, answers, strict=True):
        assert ours(obj, None) == theirs(said), label


def stored(name: str) -> dict[str, Any]:
    """The example as it is once it was created."""
    obj = example(name)
    group, kind = group_and_kind(obj)
    builtin.conform(group, kind, obj)
    builtin.default(group, kind, obj)
    builtin.prepare_for_create(group, kind, obj)
    obj["metadata"] |= {"uid": "u-1", "resourceVersion": "1", "creationTimestamp": "2026-01-02T03:04:05Z"}
    return obj


@pytest.mark.slow
@pytest.mark.parametrize("name", names_of_examples())
def test_a_changed_object_is_stored_or_refused_alike(oracle: Oracle, name: str) -> None:
    labels: list[str] = []
    objects: list[dict[str, Any]] = []
    for label, obj in cases(name):
        if DIFFERENT_IN_UPDATES.fullmatch(label):
            continue
        obj["metadata"] |= {"uid": "u-1", "resourceVersion": "1", "creationTimestamp": "2026-01-02T03:04:05Z"}
        labels.append(label)
        objects.append(obj)
    before = stored(name)
    answers = oracle.ask([{"object": obj, "old": before} for obj in objects])
    for label, obj, said in zip(labels, objects, answers, strict=True):
        assert ours(obj, copied(before)) == theirs(said), label


def test_larger_mistakes_in_new_objects_are_refused_alike(oracle: Oracle) -> None:
    wrong = spoilings(LINES)
    objects = [spoiled(example(one.example), one.path, copied(one.value)) for one in wrong]
    for one, obj, said in zip(wrong, objects, oracle.ask([{"object": obj} for obj in objects]), strict=True):
        assert ours(obj, None) == theirs(said), one


def test_larger_changes_are_taken_or_refused_alike(oracle: Oracle) -> None:
    changes = spoilings(UPDATES)
    before = [stored(one.example) for one in changes]
    after = [spoiled(copied(old), one.path, copied(one.value)) for one, old in zip(changes, before, strict=True)]
    answers = oracle.ask([{"object": new, "old": old} for new, old in zip(after, before, strict=True)])
    for one, new, old, said in zip(changes, after, before, answers, strict=True):
        assert ours(new, copied(old)) == theirs(said), one
