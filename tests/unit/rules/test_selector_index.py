"""Selectors and the objects that they pick: what the index says is what looking at everything would say."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.api.selectors import EVERYTHING, NOTHING, Selector, selector_from_object
from herder.rules.matching.selector_index import SelectorIndex

KEYS, VALUES, NAMES = ("app", "tier", "zone"), ("", "a", "b"), ("n1", "n2", "n3", "n4")
NAMESPACES = ("shop", "bank")


def expressions() -> st.SearchStrategy[dict[str, Any]]:
    valued = st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.lists(st.sampled_from(VALUES), min_size=1, max_size=2),
        }
    )
    bare = st.fixed_dictionaries({"key": st.sampled_from(KEYS), "operator": st.sampled_from(("Exists", "DoesNotExist"))})
    return valued | bare


LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
SELECTORS: st.SearchStrategy[Selector] = st.fixed_dictionaries(
    {"matchLabels": LABELS, "matchExpressions": st.lists(expressions(), max_size=2)}
).map(selector_from_object) | st.just(NOTHING)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("selector"), st.sampled_from(NAMES), st.sampled_from(NAMESPACES), SELECTORS | st.none()),
        st.tuples(st.just("labels"), st.sampled_from(NAMES), st.sampled_from(NAMESPACES), LABELS | st.none()),
    ),
    max_size=40,
)


@given(STEPS)
def test_the_index_finds_from_both_sides_what_a_look_at_everything_finds(steps: list[tuple[str, str, str, Any]]) -> None:
    index: SelectorIndex[str, str] = SelectorIndex()
    selectors: dict[str, tuple[str, Selector]] = {}
    objects: dict[str, tuple[str, dict[str, str]]] = {}
    for what, name, namespace, value in steps:
        known: dict[str, Any] = selectors if what == "selector" else objects
        put: Callable[..., None] = index.set_selector if what == "selector" else index.set_labels
        take: Callable[[str], None] = index.remove_selector if what == "selector" else index.remove_labels
        if value is None:
            known.pop(name, None)
            take(name)
        else:
            known[name] = (namespace, value)
            put(name, namespace, value)
    for name, (namespace, labels) in objects.items():
        picking = [key for key, (where, selector) in selectors.items() if where == namespace and selector.matches(labels)]
        assert index.selectors_of(namespace, labels) == sorted(picking), name
    for key, (namespace, selector) in selectors.items():
        picked = [name for name, (where, labels) in objects.items() if where == namespace and selector.matches(labels)]
        assert index.objects_of(key) == sorted(picked)


@pytest.mark.parametrize("removed", [False, True])
def test_what_was_removed_leaves_nothing_behind(removed: bool) -> None:
    index: SelectorIndex[str, str] = SelectorIndex()
    index.set_selector("all", "shop", EVERYTHING)
    index.set_selector("web", "shop", selector_from_object({"matchLabels": {"app": "web"}}))
    index.set_labels("p", "shop", {"app": "web"})
    if removed:
        index.remove_selector("all")
        index.remove_selector("web")
        index.remove_labels("p")
    kept = [value for part in vars(index).values() for value in part]
    assert bool(kept) is not removed


def test_a_selector_of_another_label_is_not_even_looked_at() -> None:
    index: SelectorIndex[str, str] = SelectorIndex()
    for number in range(100):
        index.set_selector(f"budget-{number}", "shop", selector_from_object({"matchLabels": {"vm": str(number)}}))
    index.set_selector("elsewhere", "bank", EVERYTHING)
    index.set_selector("of nobody", "shop", NOTHING)
    assert index.crowd("shop", {"vm": "7"}) == 1
    assert index.crowd("shop", {"app": "7"}) == 0
    index.set_selector("elsewhere", "shop", EVERYTHING)
    assert (index.crowd("shop", {}), index.crowd("bank", {})) == (1, 0)
