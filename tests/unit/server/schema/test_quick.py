"""The quick look at values: it agrees with the exact one, and leaves alone what stays as it was."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.problems import INVALID, Problem
from herder.server.schema import Schema, compile_schema
from herder.server.schema.cel import Program
from herder.server.schema.node import build
from herder.server.schema.quick import compile_quick
from herder.server.schema.values import check_value

Json = dict[str, Any]
STRINGS: list[Json] = [{"maxLength": 3}, {"minLength": 1}, {"minLength": 1, "maxLength": 2}, {"maxLength": 2, "format": "date"}]
INTEGERS: list[Json] = [
    {"minimum": 0},
    {"maximum": 5, "minimum": -5},
    {"minimum": 0, "format": "int32"},
    {"minimum": 0, "exclusiveMinimum": True},
    {"minimum": 0.5},
]


def object_of(field: Json) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": field}}}}


@pytest.mark.parametrize("limits", STRINGS, ids=str)
@given(value=st.text("aé", max_size=5))
def test_lengths(limits: Json, value: str) -> None:
    agree({"type": "string", **limits}, value)


@pytest.mark.parametrize("limits", INTEGERS, ids=str)
@given(value=st.one_of(st.integers(-7, 7), st.sampled_from([2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63)])))
def test_numbers(limits: Json, value: int) -> None:
    agree({"type": "integer", **limits}, value)


def agree(field: Json, value: Any) -> None:
    root = build(object_of(field), None)
    found: list[Problem] = []
    check_value(obj := {"spec": {"x": value}}, root, "", found)
    assert compile_quick(root)(obj, {}) == (not found)


def counted(schema: Schema, new: Json, old: Json, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Problem], int]:
    """What is wrong, and how many rules were run to know it."""
    runs, evaluate = 0, Program.evaluate

    def counting(self: Program, variables: Json, budget: list[int] | None = None) -> Any:
        nonlocal runs
        runs += 1
        return evaluate(self, variables, budget)

    with monkeypatch.context() as patched:
        patched.setattr(Program, "evaluate", counting)
        return schema.validate(new, old), runs


def ruled(rule: str) -> Schema:
    number = {"type": "integer", "minimum": 5}
    spec = {"type": "object", "properties": {"n": number}, "x-kubernetes-validations": [{"rule": rule, "message": "no"}]}
    return compile_schema(
        {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {"n": number}}}}
    )


def test_what_stays_the_very_same_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been let in by another version of the schema."""
    spec = {"n": 1}
    schema = ruled("self.n > 5")
    assert counted(schema, {"spec": spec, "status": {"n": 6}}, {"spec": spec}, monkeypatch) == ([], 0)
    problems, runs = counted(schema, {"spec": {"n": 2}}, {"spec": spec}, monkeypatch)
    assert (len(problems), runs) == (2, 1)


def test_what_comes_beside_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"n": 1}
    ((problem,), runs) = counted(ruled("self.n > 5"), {"spec": spec, "status": {"n": 1}}, {"spec": spec}, monkeypatch)
    assert (problem.field, problem.reason, runs) == ("status.n", INVALID, 0)


def test_a_rule_about_changes_is_asked_even_then(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"n": 7}
    ((problem,), runs) = counted(ruled("self.n > oldSelf.n"), {"spec": spec}, {"spec": spec}, monkeypatch)
    assert (problem.message, runs) == ("Invalid value: no", 1)
