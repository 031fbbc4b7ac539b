"""The order of merged lists, and what cannot be merged."""

import pytest

from herder.server.apply import NotDivisible, check_config, owned
from herder.server.apply.merging import merge
from tests.unit.server.apply.schemas import FIELDS, SCHEMA, Json

TAGS = FIELDS.shape.named["spec"][1].named["tags"][1]  # pyright: ignore


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        ("abc", "cba", "cba"),
        ("abc", "b", "abc"),
        ("ab", "xb", "axb"),
        ("ab", "ax", "abx"),
        ("bax", "abn", "axbn"),
        ("ax", "nam", "naxm"),
        ("abcd", "dxa", "bcdxa"),
        ("abcdef", "fxbya", "cdefxbya"),
        ("abcde", "xeyazc", "bdxeyazc"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
        ("aax", "an", "anx"),
    ],
)
def test_lists_are_merged_in_the_order_of_the_configuration(live: str, config: str, merged: str):
    """As kube-apiserver merged them."""
    assert "".join(merge(TAGS, list(live), list(config))) == merged  # pyright: ignore


@pytest.mark.parametrize(
    "spec",
    [{"tags": ["a", "a"]}, {"tags": [None]}, {"tags": [{}]}, {"parts": [{"name": "a"}, {"name": "a"}]}, {"parts": [{"weight": 1}]}],
)
def test_items_that_cannot_be_told_apart_are_refused_with_a_reason(spec: Json):
    with pytest.raises(NotDivisible):
        owned(FIELDS.shape, {"spec": spec})
    assert len(check_config(SCHEMA.root, {"spec": spec})) == 1


def test_null_and_empty_keep_what_is_there():
    live = {"spec": {"map": {"a": 1}, "tags": ["a"], "whole": {"a": 1}}}
    config = {"spec": {"map": {}, "tags": None, "whole": {}}}
    assert merge(FIELDS.shape, live, config) == {"spec": {"map": {"a": 1}, "tags": ["a"], "whole": {}}}
