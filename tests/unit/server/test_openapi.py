"""The documents that `kubectl explain`, `apply` and `create` read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.server.builtins import BUILTINS
from herder.server.openapi import OpenApi, schema_name
from herder.server.resources import Resource, Scale

POD = "io.k8s.api.core.v1.Pod"
THINGS = Resource(
    group="ex.io",
    version="v1",
    plural="things",
    singular="thing",
    kind="Thing",
    namespaced=True,
    status=True,
    scale=Scale(spec_replicas="spec.n", status_replicas="status.n"),
    builtin=False,
    openapi={
        "type": "object",
        "description": "A thing.",
        "required": ["spec"],
        "properties": {"spec": {"type": "object"}, "metadata": {"type": "object"}},
    },
)


@pytest.fixture(scope="module")
def openapi() -> OpenApi:
    return OpenApi((*BUILTINS, THINGS))


def content(openapi: OpenApi, path: str) -> dict[str, Any]:
    document = openapi.document(path)
    assert document is not None
    return msgspec.json.decode(document.body)


def parameters(operation: dict[str, Any]) -> list[str]:
    return [one["name"] for one in operation["parameters"] if one["in"] == "query"]


def references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set[str]()
        return own.union(*(references(value) for value in part.values()))
    return set[str]().union(*(references(value) for value in part)) if isinstance(part, list) else set()


def test_the_index_has_every_group_version_under_the_hash_of_its_document(openapi: OpenApi) -> None:
    paths = msgspec.json.decode(openapi.index().body)["paths"]
    assert set(paths) == {"version", *(f"apis/{one.group_version}" if one.group else "api/v1" for one in (*BUILTINS, THINGS))}
    document = openapi.document("apis/apps/v1")
    assert document is not None
    assert paths["apis/apps/v1"] == {"serverRelativeURL": f"/openapi/v3/apis/apps/v1?hash={document.etag}"}


def test_a_group_version_that_is_not_served_has_no_document(openapi: OpenApi) -> None:
    assert openapi.document("apis/nope.io/v1") is None


def test_no_document_refers_to_a_schema_that_it_does_not_have(openapi: OpenApi) -> None:
    for path in msgspec.json.decode(openapi.index().body)["paths"]:
        document = content(openapi, path)
        assert references(document) <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


def test_operation_ids_are_unique_within_a_document(openapi: OpenApi) -> None:
    operations = [
        operation["operationId"]
        for path in content(openapi, "api/v1")["paths"].values()
        for method, operation in path.items()
        if method != "parameters"
    ]
    assert len(operations) == len(set(operations)) > 60
    assert {"readCoreV1NamespacedPod", "deleteCoreV1CollectionNamespacedPod", "listCoreV1PodForAllNamespaces"} <= set(operations)


def test_a_built_in_kind_is_found_by_its_kind_and_described(openapi: OpenApi) -> None:
    pod = content(openapi, "api/v1")["components"]["schemas"][POD]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert pod["description"] == "Containers that run together on one node."
    assert {"apiVersion", "kind", "metadata", "spec", "status"} <= set(pod["properties"])
    assert pod["properties"]["spec"]["description"] == "What is wanted."


def test_every_built_in_kind_has_its_real_schema(openapi: OpenApi) -> None:
    for resource in BUILTINS:
        path = f"apis/{resource.group_version}" if resource.group else "api/v1"
        schema = content(openapi, path)["components"]["schemas"][schema_name(resource)]
        assert set(schema["properties"]) > {"apiVersion", "kind", "metadata"}, resource.qualified


def test_a_crd_brings_its_own_schema_and_a_list(openapi: OpenApi) -> None:
    schemas = content(openapi, "apis/ex.io/v1")["components"]["schemas"]
    thing = schemas["io.ex.v1.Thing"]
    assert [thing["description"], thing["required"]] == ["A thing.", ["spec"]]
    assert set(thing["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert thing["properties"]["metadata"]["allOf"][0]["$ref"].endswith(".ObjectMeta")
    listing = schemas["io.ex.v1.ThingList"]
    assert listing["x-kubernetes-group-version-kind"] == [{"group": "ex.io", "kind": "ThingList", "version": "v1"}]
    assert listing["properties"]["items"]["items"] == {"$ref": "#/components/schemas/io.ex.v1.Thing"}
    assert THINGS.openapi is not None
    assert "apiVersion" not in THINGS.openapi["properties"]


def test_a_patch_tells_kubectl_that_fields_can_be_validated(openapi: OpenApi) -> None:
    for path, item in (
        ("api/v1", "/api/v1/namespaces/{namespace}/pods/{name}"),
        ("apis/ex.io/v1", "/apis/ex.io/v1/namespaces/{namespace}/things/{name}"),
    ):
        patch = content(openapi, path)["paths"][item]["patch"]
        assert parameters(patch) == ["dryRun", "fieldManager", "fieldValidation", "force"]
        assert patch["x-kubernetes-action"] == "patch"


def test_only_built_in_kinds_take_strategic_merge_patches(openapi: OpenApi) -> None:
    strategic = "application/strategic-merge-patch+json"
    pods = content(openapi, "api/v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    things = content(openapi, "apis/ex.io/v1")["paths"]["/apis/ex.io/v1/namespaces/{namespace}/things/{name}"]["patch"]
    assert strategic in pods["requestBody"]["content"]
    assert strategic not in things["requestBody"]["content"]


def test_cluster_scoped_resources_and_missing_verbs_have_their_own_paths(openapi: OpenApi) -> None:
    paths = content(openapi, "api/v1")["paths"]
    assert set(paths["/api/v1/namespaces"]) == {"get", "post"}
    assert set(paths["/api/v1/nodes"]) == {"get", "post", "delete"}
    assert set(paths["/api/v1/namespaces/{name}/finalize"]) == {"put", "parameters"}
    assert set(paths["/api/v1/pods"]) == {"get"}
    assert "/api/v1/namespaces/{namespace}/nodes" not in paths


def test_subresources_have_paths_and_scale_has_its_own_kind(openapi: OpenApi) -> None:
    scale = content(openapi, "apis/apps/v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]
    assert scale["patch"]["x-kubernetes-group-version-kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    things = content(openapi, "apis/ex.io/v1")["paths"]
    assert {path.rpartition("/")[2] for path in things} == {"things", "{name}", "status", "scale"}


def test_when_crds_change_only_their_documents_are_built_again() -> None:
    openapi = OpenApi((*BUILTINS, THINGS))
    before = {path: openapi.document(path) for path in ("apis/apps/v1", "apis/ex.io/v1")}
    index = openapi.index()
    changed = msgspec.structs.replace(THINGS, openapi={"type": "object", "description": "Another."})
    openapi.update((changed, *reversed(BUILTINS)))
    assert openapi.document("apis/apps/v1") is before["apis/apps/v1"]
    assert openapi.document("apis/ex.io/v1") != before["apis/ex.io/v1"]
    assert openapi.index().etag != index.etag
    openapi.update(BUILTINS)
    assert openapi.document("apis/ex.io/v1") is None


def test_a_crd_without_a_schema_may_hold_anything() -> None:
    openapi = OpenApi([msgspec.structs.replace(THINGS, openapi=None)])
    thing = content(openapi, "apis/ex.io/v1")["components"]["schemas"]["io.ex.v1.Thing"]
    assert thing["x-kubernetes-preserve-unknown-fields"] is True


def test_version_2_says_the_same_in_its_own_words(openapi: OpenApi) -> None:
    document = msgspec.json.decode(openapi.version_2().body)
    definitions = document["definitions"]
    assert all(name.removeprefix("#/definitions/") in definitions for name in references(document))
    quantity = definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    assert quantity == {"type": "string"}
    post = document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"]
    (body,) = [one for one in post["parameters"] if one["in"] == "body"]
    assert body["schema"] == {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"}
    assert post["responses"]["200"]["schema"] == body["schema"]
    assert {one["name"]: one["type"] for one in post["parameters"] if one["in"] == "query"}["dryRun"] == "string"
