"""JSON tells true, 1 and 1.0 apart, and so do we, although Python does not."""

import pytest

from herder.server.same import same_json
from herder.server.schema import compile_schema

SCHEMA = {"type": "object", "properties": {"cores": {"type": "integer"}, "name": {"type": "string"}}}


@pytest.mark.parametrize(("one", "other"), [(True, 1), (False, 0), (1, 1.0), ({"a": [True]}, {"a": [1]})])
def test_values_that_only_python_takes_for_the_same_are_not(one: object, other: object) -> None:
    assert not same_json(one, other)


def test_the_order_of_names_makes_no_difference() -> None:
    assert same_json({"a": 1, "b": [2]}, {"b": [2], "a": 1})


def test_true_in_place_of_an_unchanged_1_is_refused() -> None:
    """What did not change is not complained about, so what changed must not be taken for unchanged."""
    problems = compile_schema(SCHEMA).validate({"cores": True}, {"cores": 1})
    assert [problem.field for problem in problems] == ["cores"]
