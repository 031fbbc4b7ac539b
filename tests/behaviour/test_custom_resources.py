"""Objects of kinds that somebody defined."""

from typing import Any

import pytest

from tests.behaviour.crds import widget
from tests.engines.api import Api, Json
from tests.engines.resources import Resource

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def test_defaults_are_filled_in(api: Api, namespace: str, widgets: Resource) -> None:
    made = (await api.create(widgets, widget("a", {"parts": [{"name": "x"}, {"name": "y", "weight": 5}]}), namespace)).ok
    assert made["spec"]["colour"] == "red"
    assert made["spec"]["parts"] == [{"name": "x", "weight": 1}, {"name": "y", "weight": 5}]
    assert made["metadata"]["generation"] == 1


async def test_unknown_fields_are_pruned_except_where_they_are_kept(api: Api, namespace: str, widgets: Resource) -> None:
    reply = await api.create(widgets, widget("a", {"odd": 1, "free": {"any": {"thing": [1]}}}), namespace)
    assert reply.ok["spec"] == {"size": 1, "colour": "red", "free": {"any": {"thing": [1]}}}
    assert reply.warnings == ['299 - "unknown field \\"spec.odd\\""']


async def test_strict_refuses_unknown_fields(api: Api, namespace: str, widgets: Resource) -> None:
    reply = await api.create(
        widgets, widget("a", {"odd": 1, "parts": [{"name": "x", "odd": 2}]}), namespace, fieldValidation="Strict"
    )
    reply.refused(400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.odd", unknown field "spec.parts[0].odd"' in reply.message


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"size": 0}, ("FieldValueInvalid", "spec.size")),
        ({"size": 11}, ("FieldValueInvalid", "spec.size")),
        ({"size": "1"}, ("FieldValueTypeInvalid", "spec.size")),
        ({"size": None}, ("FieldValueRequired", "spec.size")),
        ({"colour": "blue"}, ("FieldValueNotSupported", "spec.colour")),
        ({"code": "ABC"}, ("FieldValueInvalid", "spec.code")),
        ({"code": "abcdef"}, ("FieldValueTooLong", "spec.code")),
        ({"limit": True}, ("FieldValueTypeInvalid", "spec.limit")),
        ({"parts": [{"weight": 1}]}, ("FieldValueRequired", "spec.parts[0].name")),
        ({"parts": [{"name": "x"}, {"name": "x"}]}, ("FieldValueDuplicate", "spec.parts[1]")),
        ({"parts": [{"name": "x", "weight": 1.5}]}, ("FieldValueTypeInvalid", "spec.parts[0].weight")),
        ({"parts": [{"name": name} for name in "abcd"]}, ("FieldValueTooMany", "spec.parts")),
        ({"parts": {}}, ("FieldValueTypeInvalid", "spec.parts")),
        ({"tags": ["x", "x"]}, ("FieldValueDuplicate", "spec.tags[1]")),
        ({"low": 5, "high": 1}, ("FieldValueInvalid", "spec")),
    ],
    ids=str,
)
async def test_what_the_schema_forbids_is_invalid(
    api: Api, namespace: str, widgets: Resource, spec: Json, cause: tuple[str, str]
) -> None:
    reply = await api.create(widgets, widget("a", spec), namespace)
    details = reply.refused(422, "Invalid")
    assert (details["name"], details["group"], details["kind"]) == ("a", widgets.group, "Widget")
    assert cause in reply.causes
    assert reply.message.startswith(f'Widget.{widgets.group} "a" is invalid: ')


async def test_all_that_is_wrong_is_told_at_once(api: Api, namespace: str, widgets: Resource) -> None:
    reply = await api.create(widgets, widget("a", {"size": 0, "colour": "blue"}), namespace)
    reply.refused(422, "Invalid")
    assert set(reply.causes) >= {("FieldValueInvalid", "spec.size"), ("FieldValueNotSupported", "spec.colour")}


async def test_a_rule_has_its_own_message(api: Api, namespace: str, widgets: Resource) -> None:
    reply = await api.create(widgets, widget("a", {"low": 5, "high": 1}), namespace)
    assert "low must not be above high" in reply.message


async def test_a_rule_about_change_holds_for_updates(api: Api, namespace: str, widgets: Resource) -> None:
    await api.create(widgets, widget("a", {"fixed": "x"}), namespace)
    reply = await api.patch(widgets, "a", {"spec": {"fixed": "y"}}, namespace)
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueInvalid", "spec.fixed")]
    assert "fixed does not change" in reply.message
    assert (await api.patch(widgets, "a", {"spec": {"fixed": "x", "size": 2}}, namespace)).code == 200


@pytest.mark.parametrize("value", [5, "50%"])
async def test_an_integer_or_a_string_is_kept_as_it_is(api: Api, namespace: str, widgets: Resource, value: Any) -> None:
    assert (await api.create(widgets, widget("a", {"limit": value}), namespace)).ok["spec"]["limit"] == value


async def test_null_is_kept_only_where_it_may_be(api: Api, namespace: str, widgets: Resource) -> None:
    made = (await api.create(widgets, widget("a", {"maybe": None, "colour": None}), namespace)).ok
    assert made["spec"] == {"size": 1, "maybe": None, "colour": "red"}


async def test_the_kind_must_be_said(api: Api, namespace: str, widgets: Resource) -> None:
    (await api.request("POST", widgets.path(namespace), widget("a"))).refused(400, "BadRequest")
    (await api.create(widgets, {**widget("a"), "apiVersion": "example.com/v1"}, namespace)).refused(400, "BadRequest")
    wrong = await api.create(widgets, {**widget("a"), "kind": "Gadget"}, namespace)
    wrong.refused(422, "Invalid")
    assert wrong.causes == [("FieldValueInvalid", "kind")]


async def test_the_status_is_written_apart(api: Api, namespace: str, widgets: Resource) -> None:
    made = (await api.create(widgets, {**widget("a"), "status": {"phase": "Lost"}}, namespace)).ok
    assert "status" not in made
    status = await api.patch(widgets, "a", {"status": {"phase": "Ready"}, "spec": {"size": 9}}, namespace, "status")
    assert (status.ok["status"], status.ok["spec"]["size"], status.ok["metadata"]["generation"]) == ({"phase": "Ready"}, 1, 1)
    after = await api.patch(widgets, "a", {"status": {"phase": "Lost"}, "spec": {"size": 2}}, namespace)
    assert (after.ok["status"], after.ok["spec"]["size"], after.ok["metadata"]["generation"]) == ({"phase": "Ready"}, 2, 2)


async def test_it_can_be_scaled(api: Api, namespace: str, widgets: Resource) -> None:
    await api.create(widgets, widget("a", {"replicas": 3}), namespace)
    await api.patch(widgets, "a", {"status": {"replicas": 2, "selector": "app=a"}}, namespace, "status")
    scale = (await api.get(widgets, "a", namespace, "scale")).ok
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "app=a"})
    assert (await api.patch(widgets, "a", {"spec": {"replicas": 5}}, namespace, "scale")).ok["spec"] == {"replicas": 5}
    assert (await api.get(widgets, "a", namespace)).ok["spec"]["replicas"] == 5


async def test_without_replicas_there_is_no_scale_to_read(api: Api, namespace: str, widgets: Resource) -> None:
    await api.create(widgets, widget("a"), namespace)
    reply = await api.get(widgets, "a", namespace, "scale")
    reply.refused(500, "InternalError")
    assert 'the spec replicas field ".spec.replicas" does not exist' in reply.message


async def test_it_is_shown_in_its_columns(api: Api, namespace: str, widgets: Resource) -> None:
    await api.create(widgets, widget("a", {"size": 3}), namespace)
    table = (await api.list(widgets, namespace, accept=TABLE)).ok
    shown = [(one["name"], one["type"], one["priority"]) for one in table["columnDefinitions"]]
    assert shown == [
        ("Name", "string", 0),
        ("Size", "integer", 0),
        ("Phase", "string", 0),
        ("Colour", "string", 1),
        ("Age", "date", 0),
    ]
    (row,) = table["rows"]
    assert row["cells"][:4] == ["a", 3, None, "red"]
    assert row["object"]["kind"] == "PartialObjectMetadata"


async def test_patches_work_as_on_any_object(api: Api, namespace: str, widgets: Resource) -> None:
    await api.create(widgets, widget("a", {"code": "abc", "tags": ["x"]}), namespace)
    merged = await api.patch(widgets, "a", {"spec": {"code": None, "tags": ["y"]}}, namespace)
    assert merged.ok["spec"] == {"size": 1, "colour": "red", "tags": ["y"]}
    added = await api.patch(widgets, "a", [{"op": "add", "path": "/spec/tags/-", "value": "z"}], namespace, kind="json")
    assert added.ok["spec"]["tags"] == ["y", "z"]
    (await api.patch(widgets, "a", {"spec": {"size": 99}}, namespace)).refused(422, "Invalid")


async def test_a_strategic_patch_is_not_for_them(api: Api, namespace: str, widgets: Resource) -> None:
    await api.create(widgets, widget("a"), namespace)
    reply = await api.patch(widgets, "a", {"spec": {"size": 2}}, namespace, kind="strategic")
    reply.refused(415, "UnsupportedMediaType")


async def test_they_are_selected_by_label_and_name_alone(api: Api, namespace: str, widgets: Resource) -> None:
    for name in "ab":
        await api.create(widgets, widget(name, labels={"name": name}), namespace)
    assert (await api.list(widgets, namespace, labelSelector="name=b")).names == ["b"]
    assert (await api.list(widgets, namespace, fieldSelector="metadata.name=a")).names == ["a"]
    (await api.list(widgets, namespace, fieldSelector="spec.size=1")).refused(400, "BadRequest")


async def test_items_of_their_lists_say_their_kind(api: Api, namespace: str, widgets: Resource) -> None:
    await api.create(widgets, widget("a"), namespace)
    reply = await api.list(widgets, namespace)
    assert (reply.ok["kind"], reply.ok["apiVersion"]) == ("WidgetList", widgets.api_version)
    assert (reply.items[0]["kind"], reply.items[0]["apiVersion"]) == ("Widget", widgets.api_version)


async def test_what_is_managed_is_recorded_for_them_too(api: Api, namespace: str, widgets: Resource) -> None:
    made = (await api.create(widgets, widget("a", {"parts": [{"name": "x"}], "tags": ["t"]}), namespace, fieldManager="me")).ok
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["apiVersion"]) == ("me", widgets.api_version)
    assert entry["fieldsV1"] == {
        "f:spec": {
            ".": {},
            "f:colour": {},
            "f:parts": {".": {}, 'k:{"name":"x"}': {".": {}, "f:name": {}, "f:weight": {}}},
            "f:size": {},
            "f:tags": {".": {}, 'v:"t"': {}},
        }
    }


async def test_one_of_two_megabytes_is_too_large(api: Api, namespace: str, widgets: Resource) -> None:
    reply = await api.create(widgets, widget("a", {"free": {"text": "x" * 2_000_000}}), namespace)
    assert reply.code in (413, 500), reply.body
    assert reply.body["status"] == "Failure"
    assert (await api.get(widgets, "a", namespace)).code == 404


@pytest.mark.parametrize("wrong", [{"labels": [1]}, {"annotations": 5}, {"finalizers": {"a": 1}}, {"ownerReferences": ["x"]}])
async def test_metadata_of_a_wrong_type_is_refused(api: Api, namespace: str, widgets: Resource, wrong: Json) -> None:
    (await api.create(widgets, widget("a", **wrong), namespace)).refused(400, "BadRequest")
    await api.create(widgets, widget("a"), namespace)
    (await api.patch(widgets, "a", {"metadata": wrong}, namespace)).refused(422, "Invalid")
