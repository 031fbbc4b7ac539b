"""The same objects, the same answers: what kube-apiserver said about them was written down, and is what we say."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.api.problems import Problem
from herder.server.schema import compile_schema

ANSWERS = msgspec.json.decode(Path(__file__).with_name("kubernetes_answers.json").read_bytes())
SCHEMA = compile_schema(ANSWERS["schema"])


def as_stored(spec: Any) -> dict[str, Any]:
    obj = {
        "apiVersion": "ex.io/v1",
        "kind": "Test",
        "metadata": {"name": "t"},
        "spec": msgspec.json.decode(msgspec.json.encode(spec)),
    }
    SCHEMA.prune(obj)
    SCHEMA.apply_defaults(obj)
    return obj


def as_kubernetes_says_it(problem: Problem) -> list[str]:
    """Where it names neither the field nor the value, and we do."""
    if match := re.search(r": must be a whole number from (-\d+) to ", problem.message):
        words = f"Checked value must be of type integer with format int{len(bin(int(match[1]))) - 3} in {problem.field}"
        return ["<nil>", problem.reason, f'Invalid value: "": {words}']
    if match := re.search(r": (must (?:not )?validate .*)$", problem.message):
        return ["<nil>", problem.reason, f'Invalid value: "": "{problem.field}" {match[1]}']
    return [problem.field, problem.reason, problem.message]


@pytest.mark.parametrize("case", ANSWERS["cases"], ids=lambda case: msgspec.json.encode(case["spec"]).decode()[:70])
def test_an_object_is_stored_or_refused_as_kubernetes_does_it(case: dict[str, Any]):
    obj = as_stored(case["spec"])
    old = as_stored(case["old"]) if "old" in case else None
    found = SCHEMA.validate(obj, old)
    assert sorted(as_kubernetes_says_it(one) for one in found) == case.get("causes", [])
    if "stored" in case:
        assert obj["spec"] == case["stored"]


@pytest.mark.parametrize("case", ANSWERS["cases"], ids=lambda case: msgspec.json.encode(case["spec"]).decode()[:70])
def test_the_cheap_way_never_lets_by_what_the_exact_way_refuses(case: dict[str, Any]):
    obj = as_stored(case["spec"])
    old = as_stored(case["old"]) if "old" in case else None
    if SCHEMA.accepts(msgspec.json.encode(obj)):
        assert SCHEMA.validate(obj, old, typed=True) == SCHEMA.validate(obj, old)
    else:
        assert "causes" in case
