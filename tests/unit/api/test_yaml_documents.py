"""YAML is read as Kubernetes reads it, and within bounds."""

from typing import Any

import pytest

from herder.api.yaml_documents import YamlError, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 2.5, true, null, ~, 0x1f, '5', \"q\"]\n", {"a": 1, "b": ["x", 2.5, True, None, None, 31, "5", "q"]}),
        ("when: 2026-01-01\nat: 2026-01-01T00:00:00Z", {"when": "2026-01-01", "at": "2026-01-01T00:00:00Z"}),
        ("base: &b {x: 1, w: 2}\nz: {<<: *b, w: 3}\n", {"base": {"x": 1, "w": 2}, "z": {"x": 1, "w": 3}}),
        (
            "[y, N, 0o17, 017, 08, -0x1F, 0b11, 1_000, 1e3, 1.50, +.5, 12e03]",
            [True, False, 15, 15, 8, -31, 3, 1000, 1000, 1.5, 0.5, 12000],
        ),
        ("[1:30, =, 0x, _1, 1e400, tRue, 1.2.3, 0b2]", ["1:30", "=", "0x", "_1", "1e400", "tRue", "1.2.3", "0b2"]),
        ("[18446744073709551615, 18446744073709551616]", [2**64 - 1, 2**64]),
        ("[!!float 1, !!bool yes, !!binary aGk=, !!null ~]", [1, True, "hi", None]),
        ("z: {<<: [{a: 1}, {a: 2, b: 3}]}", {"z": {"a": 1, "b": 3}}),
        ("- &a [x]\n- *a\n", [["x"], ["x"]]),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ("yes: no\n1: 2\n", {"true": False, "1": 2}),
        ('{"json": [1, {"a": "b"}]}', {"json": [1, {"a": "b"}]}),
        ("", None),
        ("# nothing\n", None),
        ("a: !!str 5", {"a": "5"}),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert read_yaml(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: &a [*a]",
        "a: *b",
        "a: .nan",
        "a: !!set {b}",
        "a: !local b",
        "? [a]\n: b",
        "a: 1\n---\nb: 2",
        "[" * 1000,
        "[" * 100_000 + "]" * 100_000,
        "- " * 100_000,
        "a: " + "9" * 5000,
        "<<: 5",
        "x: [" + "a," * 250_000 + "]",
    ],
    ids=lambda text: text[:12],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(YamlError):
        read_yaml(text.encode())


def test_few_lines_cannot_stand_for_a_mountain() -> None:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for level in "bcdefghij":
        before = chr(ord(level) - 1)
        lines.append(f"{level}: &{level} [{','.join([f'*{before}'] * 9)}]")
    with pytest.raises(YamlError, match="more than"):
        read_yaml("\n".join(lines).encode())


@pytest.mark.parametrize(
    "lines",
    [
        f"a: &a {'x' * 100_000}\nb: [{','.join(['*a'] * 100)}]",
        f"a: &a {{k: {'x' * 100_000}}}\nb: [{','.join(['{<<: *a}'] * 100)}]",
        f"a: &a [{'x' * 10_000}]\nb: &b [{','.join(['*a'] * 30)}]\nc: [{','.join(['*b'] * 30)}]",
        f"a: &a {'x' * 100_000}\nb: {{{','.join(f'{one}: {{*a : 1}}' for one in range(100))}}}",
    ],
    ids=["values", "merges", "levels", "keys"],
)
def test_few_aliases_cannot_stand_for_a_mountain_of_text(lines: str) -> None:
    with pytest.raises(YamlError, match="longer than 3145728 characters"):
        read_yaml(lines.encode())


def test_keys_that_are_said_twice_are_told_by_their_lines() -> None:
    doubled: list[str] = []
    assert read_yaml(b"a: {b: 1, b: 2}\nc:\n- 1.5: x\n  1.5: w\n  '1.5': z\n  true: t\n  yes: u\n", doubled) == {
        "a": {"b": 2},
        "c": [{"1.5": "z", "true": "u"}],
    }
    assert doubled == [
        'line 1: key "b" already set in map',
        "line 4: key 1.5 already set in map",
        "line 7: key true already set in map",
    ]


def test_of_very_many_doubled_keys_the_first_are_told() -> None:
    doubled: list[str] = []
    read_yaml(b"a: 1\n" * 1000, doubled)
    assert len(doubled) == 100
