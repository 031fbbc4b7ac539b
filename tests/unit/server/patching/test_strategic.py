"""The laws of strategic merge patch, on a schema small enough to see through."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herder.server.patching import PatchError, apply_merge_patch, apply_strategic_patch

Json = dict[str, Any]
ITEM: Json = {"properties": {"name": {"type": "string"}, "value": {"type": "integer"}}}
SCHEMA: Json = {
    "properties": {
        "items": {
            "type": "array",
            "items": {"allOf": [{"$ref": "#/components/schemas/Item"}]},
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "name",
        },
        "words": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
        "plain": {"type": "array", "items": {"type": "string"}},
        "map": {"additionalProperties": {"type": "integer"}},
        "whole": {"x-kubernetes-patch-strategy": "replace"},
    }
}
small = st.integers(0, 2)
letters = st.sampled_from("abc")
items = st.lists(st.fixed_dictionaries({"name": letters}, optional={"value": small}), max_size=3, unique_by=lambda one: one["name"])
words = st.lists(letters, max_size=3, unique=True)
maps = st.dictionaries(letters, small, max_size=3)
documents = st.fixed_dictionaries({}, optional={"items": items, "words": words, "plain": words, "map": maps, "whole": maps})


def patched(document: Json, patch: Json) -> Json:
    """Patches may change what they get."""
    copied = msgspec.json.decode(msgspec.json.encode((document, patch)))
    return apply_strategic_patch(copied[0], copied[1], SCHEMA, {"Item": ITEM})


@given(documents)
def test_a_patch_of_nothing_changes_nothing(document: Json):
    assert patched(document, {}) == document


@pytest.mark.slow
@given(documents)
def test_a_document_patched_with_itself_stays(document: Json):
    assert patched(document, document) == document


@given(documents, documents)
def test_patching_twice_is_patching_once(document: Json, patch: Json):
    once = patched(document, patch)
    assert patched(once, patch) == once


@given(documents, documents)
def test_what_the_patch_says_is_so_and_what_it_does_not_name_stays(document: Json, patch: Json):
    result = patched(document, patch)
    found = {one["name"]: one for one in result.get("items", [])}
    for one in patch.get("items", []):
        assert one.items() <= found[one["name"]].items()
    assert set(patch.get("words", [])) | set(document.get("words", [])) == set(result.get("words", []))
    before = {one["name"]: one for one in document.get("items", [])}
    assert set(found) == set(before) | {one["name"] for one in patch.get("items", [])}
    for field in ("plain", "whole"):
        assert result.get(field) == patch.get(field, document.get(field))


@given(maps, maps)
def test_of_maps_it_is_a_merge_patch(one: Json, other: Json):
    patch: Json = {"map": {**other, "z": None}}
    assert patched({"map": one}, patch) == apply_merge_patch({"map": dict(one)}, {"map": {**other, "z": None}})


@given(items, words)
def test_deleting_every_item_leaves_none(some: list[Json], others: list[str]):
    patch = {
        "items": [{"name": one["name"], "$patch": "delete"} for one in some],
        "$deleteFromPrimitiveList/words": others,
    }
    assert patched({"items": some, "words": others}, patch) == {"items": [], "words": []}


@given(items, st.permutations("abc"))
def test_the_order_that_is_set_is_the_order(some: list[Json], order: list[str]):
    result = patched({"items": some}, {"$setElementOrder/items": [{"name": name} for name in order]})
    assert [one["name"] for one in result["items"]] == [name for name in order if name in {one["name"] for one in some}]


@given(documents, documents)
def test_a_replacement_is_the_patch_itself(document: Json, patch: Json):
    assert patched(document, {**patch, "$patch": "replace"}) == patch


@pytest.mark.parametrize(
    "patch",
    [
        {"$patch": "bogus"},
        {"$retainKeys": "map"},
        {"$retainKeys": ["map"], "words": ["a"]},
        {"$setElementOrder": []},
        {"$deleteFromPrimitiveList": []},
        {"$setElementOrder/items": {}},
        {"$setElementOrder/items": [{"value": 1}]},
        {"$setElementOrder/unknown": ["a"]},
        {"$setElementOrder/items": [{"name": "a"}], "items": [{"name": "b"}]},
        {"items": [{"value": 1}]},
        {"items": [{"$patch": "delete"}]},
        {"items": [{"$patch": "merge"}]},
        {"items": [{"name": {"a": 1}}]},
        {"items": ["a"]},
        {"words": [["a"]]},
        {"words": [{"a": 1}]},
    ],
)
def test_what_makes_no_sense_is_refused(patch: Json):
    with pytest.raises(PatchError):
        patched({"items": [{"name": "a"}], "words": ["a"], "map": {"a": 1}}, patch)


def test_what_is_new_comes_without_directives_and_nulls():
    patch = {
        "items": [{"name": "a", "value": None}],
        "map": {"a": 1, "b": None, "$retainKeys": ["a"]},
        "whole": {"$patch": "delete"},
    }
    assert patched({}, patch) == {"items": [{"name": "a"}], "map": {"a": 1}}


def test_long_lists_take_no_longer_than_they_are():
    many = [{"name": str(number), "value": number} for number in range(20_000)]
    assert patched({"items": many}, {"items": list(reversed(many))})["items"] == many[::-1]
