"""The metadata of custom kinds has types, whatever their own schemas say."""

from typing import Any

import pytest

from tests.behaviour.crds import widget
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS, Resource

WRONG = [
    {"labels": True},
    {"labels": {"a": 5}},
    {"annotations": []},
    {"annotations": {"a": {}}},
    {"finalizers": "x"},
    {"finalizers": [5]},
    {"ownerReferences": {}},
    {"ownerReferences": ["x"]},
    {"generateName": True},
    {"uid": 5},
    {"resourceVersion": 5},
    {"generation": "x"},
    {"creationTimestamp": "yesterday"},
    {"managedFields": "x"},
]


@pytest.mark.parametrize("metadata", WRONG, ids=str)
async def test_a_wrong_type_is_not_even_read(api: Api, namespace: str, widgets: Resource, metadata: dict[str, Any]) -> None:
    reply = await api.create(widgets, widget("a", **metadata), namespace)
    reply.refused(400, "BadRequest")
    assert reply.message.startswith('Widget in version "v1" cannot be handled as a Widget: ')
    (await api.create(widgets, widget("b"), namespace)).ok  # noqa: B018
    (await api.patch(widgets, "b", {"metadata": metadata}, namespace)).refused(422, "Invalid")


@pytest.mark.parametrize("metadata", [{"finalizers": [None]}, {"ownerReferences": [None]}], ids=str)
async def test_null_in_a_list_is_something_empty(api: Api, namespace: str, widgets: Resource, metadata: dict[str, Any]) -> None:
    (await api.create(widgets, widget("a", **metadata), namespace)).refused(422, "Invalid")
    (await api.create(CONFIG_MAPS, {"metadata": {"name": "a", **metadata}}, namespace)).refused(422, "Invalid")


async def test_null_as_a_value_is_an_empty_text(api: Api, namespace: str, widgets: Resource) -> None:
    made = (await api.create(widgets, widget("a", labels={"x": None}, annotations={"y": None}, finalizers=None), namespace)).ok
    assert (made["metadata"]["labels"], made["metadata"]["annotations"]) == ({"x": ""}, {"y": ""})
    assert "finalizers" not in made["metadata"]
