"""Selectors: which labels, fields and nodes are picked, and which selectors are refused."""

from __future__ import annotations

from typing import Any

import pytest

from herder.api.field_selectors import escape_value, parse_field_selector, unescape_value
from herder.api.node_selector import NodeSelector, PreferredTerms, RequiredNodeAffinity
from herder.api.selector_text import parse_selector
from herder.api.selectors import EVERYTHING, NOTHING, selector_from_labels, selector_from_object, validate_label_selector


@pytest.mark.parametrize(
    ("text", "labels", "picked"),
    [
        ("a=b", {"a": "b"}, True),
        ("a=b", {}, False),
        ("a!=b", {}, True),
        ("a in (x,y)", {"a": "y"}, True),
        ("a notin (x,y)", {"a": "y"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("n>1,n<5", {"n": "3"}, True),
        ("n>1", {"n": "three"}, False),
        ("", None, True),
    ],
)
def test_a_label_selector_picks_what_it_says(text: str, labels: dict[str, str] | None, picked: bool) -> None:
    assert parse_selector(text).matches(labels) is picked


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,", "found '', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_a_text_that_is_no_selector_is_refused_in_kubernetes_words(text: str, complaint: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_selector(text)
    assert str(refusal.value) == complaint


def test_no_selector_picks_nothing_and_an_empty_one_everything() -> None:
    assert selector_from_object(None) is NOTHING and not NOTHING.matches({"a": "b"}) and not NOTHING.empty
    assert selector_from_object({}) is EVERYTHING and EVERYTHING.matches(None) and EVERYTHING.empty
    assert selector_from_labels(None) is EVERYTHING


def test_labels_and_expressions_of_one_selector_must_all_hold() -> None:
    selector = selector_from_object({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]})
    assert selector.matches({"a": "b", "c": ""})
    assert not selector.matches({"a": "b"})
    assert str(selector) == "a=b,c"
    assert (selector.exact_value("a"), selector.exact_value("c")) == ("b", None)


def test_each_mistake_in_a_selector_is_named_with_its_field() -> None:
    wrong = {"matchLabels": {"-": "ok"}, "matchExpressions": [{"key": "a", "operator": "In"}, {"key": "b", "operator": "Near"}]}
    fields = [problem.field for problem in validate_label_selector(wrong, "spec.selector")]
    assert fields == [
        "spec.selector.matchLabels",
        "spec.selector.matchExpressions[0].values",
        "spec.selector.matchExpressions[1].operator",
    ]


def test_field_selectors_compare_fields_and_a_missing_field_is_empty() -> None:
    selector = parse_field_selector("spec.nodeName=,status.phase!=Failed")
    assert selector.matches({"status.phase": "Running"})
    assert not selector.matches({"status.phase": "Failed"})
    assert not selector.matches({"spec.nodeName": "n1"})
    assert parse_field_selector("metadata.name=a").exact_value("metadata.name") == "a"


def test_a_field_that_a_kind_does_not_offer_can_be_refused() -> None:
    def check(field: str, value: str) -> None:
        raise ValueError(f"field label not supported: {field}")

    with pytest.raises(ValueError, match=r"field label not supported: spec\.x"):
        parse_field_selector("spec.x=1", check)


def test_escaped_values_come_back_as_they_were() -> None:
    assert unescape_value(escape_value("a,b=c\\d")) == "a,b=c\\d"
    with pytest.raises(ValueError, match="invalid escape sequence"):
        unescape_value("a\\b")


def terms(*each: dict[str, Any]) -> NodeSelector:
    return NodeSelector({"nodeSelectorTerms": list(each)})


def test_one_term_is_enough_and_an_empty_term_picks_no_node() -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert terms(zone, by_name).matches({"zone": "b"}, "n1")
    assert terms({}, zone).matches({"zone": "a"}, "n2")
    assert not terms({}).matches({"zone": "a"}, "n1")
    assert not terms().matches({}, "n1")


def test_a_term_with_a_mistake_picks_nothing_and_the_others_still_count() -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["many"]}]}
    right = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    selector = terms(wrong, right)
    assert [problem.field for problem in selector.problems] == ["nodeSelectorTerms[0].matchExpressions[0].values[0]"]
    assert selector.matches({"a": "5"}, "n1")
    assert not terms(wrong).matches({"a": "5"}, "n1")


def test_preferences_add_up_and_a_pod_demands_selector_and_affinity_together() -> None:
    fast = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = PreferredTerms(
        [{"weight": 3, "preference": fast}, {"weight": 2, "preference": fast}, {"weight": 9, "preference": {}}]
    )
    assert preferred.score({"disk": "ssd"}, "n1") == 5
    demanded = RequiredNodeAffinity(
        {
            "nodeSelector": {"zone": "a"},
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [fast]}}},
        }
    )
    assert demanded.matches({"zone": "a", "disk": "ssd"}, "n1")
    assert not demanded.matches({"zone": "a"}, "n1")
    assert not demanded.matches({"disk": "ssd"}, "n1")
