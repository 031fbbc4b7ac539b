"""Fields of two shapes, brought into one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.normalise import added_term, label_pairs, label_text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (-3, "-3"),
        ("db", "db"),
        ("", ""),
        (1.5, None),
        (None, None),
        ([], None),
        ({}, None),
    ],
)
def test_a_label_value_is_read_as_it_was_written(written: Any, read: str | None) -> None:
    assert label_text(written) == read


@given(st.dictionaries(st.text(), st.text() | st.booleans() | st.integers()))
def test_scalars_always_become_strings_and_strings_stay(selector: dict[str, Any]) -> None:
    pairs = label_pairs(selector)
    assert pairs.keys() == selector.keys()
    assert all(isinstance(value, str) for value in pairs.values())
    assert label_pairs(pairs) == pairs


def test_a_value_that_can_be_no_label_value_is_named() -> None:
    with pytest.raises(ValueError, match="the value of version is no string: write it in quotes"):
        label_pairs({"version": 1.10})


TERM: dict[str, Any] = {"matchExpressions": [{"key": "disktype", "operator": "In", "values": ["ssd"]}]}


@pytest.mark.parametrize(
    ("written", "read"), [(None, {}), ({}, {}), ([], {}), ([{}], {}), ([None], {}), (TERM, TERM), ([TERM], TERM)]
)
def test_a_term_and_a_list_of_one_are_the_same(written: Any, read: dict[str, Any]) -> None:
    assert added_term(written) == read


@pytest.mark.parametrize(
    ("written", "words"),
    [([TERM, TERM], "must be one term, not 2"), ("node-1", "NodeSelectorTerm"), ([[TERM]], "NodeSelectorTerm")],
)
def test_several_terms_and_other_shapes_are_an_error(written: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        added_term(written)
