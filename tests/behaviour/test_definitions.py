"""Custom resource definitions themselves: how they come, change and go."""

from typing import Any

import pytest

from tests.behaviour.crds import COUNT, STRING, condition, definition, install, resource_of, schema, version, widget
from tests.engines.api import Api, Json
from tests.engines.resources import CRDS
from tests.engines.waiting import eventually


async def remove(api: Api, body: Json) -> None:
    await api.delete(CRDS, body["metadata"]["name"])


async def test_a_definition_is_accepted_and_established(api: Api, group: str) -> None:
    body = definition(group)
    created = (await api.create(CRDS, body)).ok
    assert created["spec"]["conversion"] == {"strategy": "None"}
    assert created["metadata"]["generation"] == 1

    async def established() -> Json:
        found = (await api.get(CRDS, body["metadata"]["name"])).ok
        return found if condition(found, "Established").get("status") == "True" else {}

    found = await eventually(established)
    names = condition(found, "NamesAccepted")
    assert (names["status"], names["reason"]) == ("True", "NoConflicts")
    assert condition(found, "Established")["reason"] == "InitialNamesAccepted"
    assert found["status"]["acceptedNames"] == body["spec"]["names"]
    assert found["status"]["storedVersions"] == ["v1"]
    await remove(api, body)


async def test_names_that_are_left_out_follow_from_the_kind(api: Api, group: str) -> None:
    body = definition(group)
    body["spec"]["names"] = {"plural": "widgets", "kind": "Widget"}
    created = (await api.create(CRDS, body)).ok
    assert created["spec"]["names"] == {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    await remove(api, body)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"metadata": {"name": "other.example.com"}}, ("FieldValueInvalid", "metadata.name")),
        ({"scope": "Everywhere"}, ("FieldValueNotSupported", "spec.scope")),
        ({"versions": [{**version(), "storage": False}]}, ("FieldValueInvalid", "spec.versions")),
        (
            {"versions": [{"name": "v1", "served": True, "storage": True}]},
            ("FieldValueRequired", "spec.versions[0].schema.openAPIV3Schema"),
        ),
        (
            {"versions": [version(spec={"properties": {}})]},
            ("FieldValueRequired", "openAPIV3Schema.properties[spec].type"),
        ),
        (
            {"versions": [version(spec={"type": "thing"})]},
            ("FieldValueNotSupported", "openAPIV3Schema.properties[spec].type"),
        ),
        (
            {"versions": [version(spec={"type": "object", "x-kubernetes-validations": [{"rule": "self.x +"}]})]},
            ("FieldValueInvalid", "openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"),
        ),
    ],
    ids=["name", "scope", "no storage", "no schema", "no type", "unknown type", "bad rule"],
)
async def test_a_definition_that_cannot_be(api: Api, group: str, change: Json, cause: tuple[str, str]) -> None:
    body = definition(group)
    body["spec"].update({key: value for key, value in change.items() if key != "metadata"})
    body["metadata"].update(change.get("metadata", {}))
    reply = await api.create(CRDS, body)
    details = reply.refused(422, "Invalid")
    assert (details["group"], details["kind"]) == ("apiextensions.k8s.io", "CustomResourceDefinition")
    # Where a schema lies depends on whether all versions share it; the path inside it does not.
    assert any((reason, field[-len(cause[1]) :]) == cause for reason, field in reply.causes), reply.causes


async def test_a_kind_that_is_taken_is_not_accepted(api: Api, group: str) -> None:
    first, second = definition(group), definition(group, plural="gadgets", singular="gadget")
    await install(api, first)
    await api.create(CRDS, second)

    async def refused() -> Json:
        found = (await api.get(CRDS, second["metadata"]["name"])).ok
        return found if condition(found, "NamesAccepted").get("status") == "False" else {}

    found = await eventually(refused)
    assert condition(found, "NamesAccepted")["reason"] == "ListKindConflict"
    assert condition(found, "Established")["status"] == "False"
    assert (await api.request("GET", f"/apis/{group}/v1/gadgets")).code == 404
    await remove(api, second)
    await remove(api, first)


async def test_what_is_served_can_be_discovered_and_has_a_schema(api: Api, group: str) -> None:
    body = definition(group, [version(subresources={"status": {}})], shortNames=["wd"])
    await install(api, body)

    async def discovered() -> Json:
        reply = await api.request("GET", f"/apis/{group}/v1")
        return {one["name"]: one for one in reply.body["resources"]} if reply.code == 200 else {}

    found = await eventually(discovered)
    assert (found["widgets"]["kind"], found["widgets"]["shortNames"]) == ("Widget", ["wd"])
    assert found["widgets/status"]["verbs"] == ["get", "patch", "update"]

    async def listed() -> bool:
        groups = (await api.request("GET", "/apis")).ok["groups"]
        return any(one["name"] == group for one in groups)

    await eventually(listed)

    async def described() -> Json:
        reply = await api.request("GET", f"/openapi/v3/apis/{group}/v1")
        return reply.body["components"]["schemas"] if reply.code == 200 else {}

    kinds = [
        (one, kind) for one in (await eventually(described)).values() for kind in one.get("x-kubernetes-group-version-kind", [])
    ]
    mine = next(one for one, kind in kinds if kind == {"group": group, "version": "v1", "kind": "Widget"})
    assert mine["properties"]["spec"]["properties"]["size"] == {"type": "integer", "minimum": 1, "maximum": 10}
    await remove(api, body)


async def test_a_new_schema_takes_effect(api: Api, namespace: str, group: str) -> None:
    body = definition(group, [version(spec={"type": "object", "properties": {"a": STRING}})])
    widgets = await install(api, body)
    old = (await api.create(widgets, {"metadata": {"name": "a"}, "spec": {"a": "x", "b": 5}}, namespace)).ok
    assert old["spec"] == {"a": "x"}
    both = schema({"type": "object", "properties": {"a": STRING, "b": {**COUNT, "default": 7}}})
    change = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": both}]
    changed = await api.patch(CRDS, body["metadata"]["name"], change, kind="json")
    assert changed.ok["metadata"]["generation"] == 2

    async def defaulted() -> bool:
        return (await api.get(widgets, "a", namespace)).ok["spec"] == {"a": "x", "b": 7}

    await eventually(defaulted)  # also what was stored before
    await remove(api, body)


async def test_two_versions_show_the_same_object(api: Api, namespace: str, group: str) -> None:
    free: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    body = definition(group, [version("v1", free), {**version("v1beta1", free), "storage": False, "deprecated": True}])
    new = await install(api, body)
    old = resource_of(body, "v1beta1")
    made = (await api.create(old, widget("a"), namespace)).ok
    assert made["apiVersion"] == f"{group}/v1beta1"
    seen = (await api.get(new, "a", namespace)).ok
    assert seen["apiVersion"] == f"{group}/v1"
    assert (seen["spec"], seen["metadata"]["uid"]) == (made["spec"], made["metadata"]["uid"])
    warned = await api.get(old, "a", namespace)
    assert warned.warnings == [f'299 - "{group}/v1beta1 Widget is deprecated; use {group}/v1 Widget"']
    async with api.watch(old, namespace) as watch:
        assert (await watch.next()).object["apiVersion"] == f"{group}/v1beta1"
    await remove(api, body)


async def test_a_version_that_is_not_served_is_not_found(api: Api, group: str) -> None:
    body = definition(group, [version("v1"), {**version("v2"), "storage": False, "served": False}])
    await install(api, body)
    assert (await api.list(resource_of(body, "v2"))).code == 404
    await remove(api, body)


async def test_deleting_a_definition_deletes_what_it_defines(api: Api, namespace: str, group: str) -> None:
    body = definition(group)
    widgets = await install(api, body)
    await api.create(widgets, widget("a"), namespace)
    async with api.watch(widgets, namespace) as watch:
        assert (await watch.next()).brief == ("ADDED", "a")
        reply = await api.delete(CRDS, body["metadata"]["name"])
        assert reply.ok["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert (await watch.until("DELETED"))[-1].name == "a"

    async def gone() -> bool:
        return (await api.get(CRDS, body["metadata"]["name"])).code == 404

    await eventually(gone)

    async def unserved() -> bool:
        return (await api.list(widgets)).code == 404

    await eventually(unserved)


async def test_a_watch_from_before_the_definition_is_too_old_or_shows_everything(api: Api, namespace: str, group: str) -> None:
    body = definition(group)
    widgets = await install(api, body)
    await api.create(widgets, widget("a"), namespace)
    async with api.watch(widgets, namespace, resourceVersion="1") as watch:
        first = await watch.next()
        if first.type == "ERROR":
            assert (first.object["kind"], first.object["code"], first.object["reason"]) == ("Status", 410, "Expired")
            assert first.object["message"].startswith("too old resource version: 1 (")
            assert await watch.rest() == []
        else:
            assert first.brief == ("ADDED", "a")
    await remove(api, body)


async def test_a_cluster_wide_kind_has_no_namespace(api: Api, namespace: str, group: str) -> None:
    body: dict[str, Any] = definition(group, scope="Cluster")
    widgets = await install(api, body)
    assert "namespace" not in (await api.create(widgets, widget("a"))).ok["metadata"]
    assert (await api.list(widgets, namespace)).code == 404
    await remove(api, body)
