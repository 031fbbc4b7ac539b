"""Paths find in an object what Kubernetes finds with them (answers taken from kube-apiserver's own tables)."""

from __future__ import annotations

from typing import Any

import pytest

from herder.server.jsonpath import compile_path

THING: dict[str, Any] = {
    "metadata": {"annotations": {"a.b/c": "dotted"}},
    "spec": {
        "s": "text",
        "i": 5,
        "nil": None,
        "m": {"k": "v", "a": [1]},
        "l": ["x", "y", "z"],
        "c": [{"type": "Old", "status": "F", "n": 1}, {"type": "Ready", "status": "True", "n": 3, "ok": True}],
        "deeper": {"deep": "found"},
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.s", ["text"]),
        (".spec.m.k", ["v"]),
        (".spec.missing.more", []),
        (".spec.nil", [None]),
        (".spec.nil.more", []),
        (".spec.l[0]", ["x"]),
        (".spec.l[-1]", ["z"]),
        (".spec.l[9]", []),
        (".spec.l[*]", ["x", "y", "z"]),
        (".spec.l[1:]", ["y", "z"]),
        (".spec.l[0:3:2]", ["x", "z"]),
        (".spec.l[0,2]", ["x", "z"]),
        (".spec['s','i']", ["text", 5]),
        (".spec.m.*", ["v", [1]]),
        (".spec.m[0]", []),
        (".spec.l.x", []),
        ("..deep", ["found"]),
        (".", [THING]),
        ("$.spec.s", ["text"]),
        (r".metadata.annotations.a\.b/c", ["dotted"]),
        (r".metadata.annotations['a\.b/c']", ["dotted"]),
        (".metadata.annotations['a.b/c']", []),
        (".spec['m.k']", ["v"]),
    ],
)
def test_a_path_finds_what_kubernetes_finds(path: str, found: list[Any]) -> None:
    assert compile_path(path)(THING) == found


@pytest.mark.parametrize(
    ("condition", "types"),
    [
        ('@.type=="Ready"', ["Ready"]),
        ("@.type == 'Ready'", ["Ready"]),
        ('@.type!="Ready"', ["Old"]),
        ("@.n>1", ["Ready"]),
        ("@.n>=1", ["Old", "Ready"]),
        ("@.n<3", ["Old"]),
        ("@.n<=0", []),
        ("@.ok==true", ["Ready"]),
        ("@.ok", ["Ready"]),
        ("@.gone", []),
        ('@.type==")]"', []),
    ],
)
def test_a_filter_keeps_the_items_that_match(condition: str, types: list[str]) -> None:
    assert compile_path(f".spec.c[?({condition})].type")(THING) == types


@pytest.mark.parametrize("condition", ['@.n=="1"', "@.type>1", "@.ok<true", "@.n==1.5"])
def test_values_of_different_types_are_not_compared_and_nothing_is_found(condition: str) -> None:
    assert compile_path(f".spec.c[?({condition})].type")(THING) == []


def test_filtering_something_that_is_no_list_finds_nothing() -> None:
    assert compile_path('.spec.m[?(@.k=="v")]')(THING) == []


@pytest.mark.parametrize(
    "path",
    ["", "spec.s", ".spec.l[", ".spec.l[x]", ".spec.l[]", ".spec.l[0:1:0]", ".spec. .a", '.c[?(@.a=="x" && @.b=="y")]', ".c[?(@.a"],
)
def test_a_path_that_makes_no_sense_is_refused_by_name(path: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON path"):
        compile_path(path)


def test_a_path_is_compiled_once() -> None:
    assert compile_path(".spec.once") is compile_path(".spec.once")
