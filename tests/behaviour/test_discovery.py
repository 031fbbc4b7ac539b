"""What the API says of itself."""

import base64
import hashlib

import pytest

from tests.behaviour.crds import install, widgets_definition
from tests.engines.api import Api, Json
from tests.engines.resources import CRDS

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
GROUPS = [
    "apps",
    "policy",
    "coordination.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "rbac.authorization.k8s.io",
    "apiextensions.k8s.io",
]


async def read(api: Api, path: str) -> Json:
    return (await api.request("GET", path)).ok


async def resources_of(api: Api, path: str) -> dict[str, Json]:
    return {one["name"]: one for one in (await read(api, path))["resources"]}


async def test_the_core_versions(api: Api) -> None:
    answer = await read(api, "/api")
    assert (answer["kind"], answer["versions"]) == ("APIVersions", ["v1"])


async def test_the_groups(api: Api) -> None:
    answer = await read(api, "/apis")
    assert (answer["kind"], answer["apiVersion"]) == ("APIGroupList", "v1")
    groups = {group["name"]: group for group in answer["groups"]}
    for name in GROUPS:
        version = {"groupVersion": f"{name}/v1", "version": "v1"}
        assert version in groups[name]["versions"]
        assert groups[name]["preferredVersion"] == version


async def test_one_group(api: Api) -> None:
    answer = await read(api, "/apis/apps")
    version = {"groupVersion": "apps/v1", "version": "v1"}
    expected = {"kind": "APIGroup", "apiVersion": "v1", "name": "apps", "versions": [version], "preferredVersion": version}
    assert answer == expected


async def test_the_resources_of_the_core(api: Api) -> None:
    assert (await read(api, "/api/v1"))["groupVersion"] == "v1"
    resources = await resources_of(api, "/api/v1")
    pods = resources["pods"]
    assert (pods["kind"], pods["singularName"], pods["namespaced"], pods["verbs"]) == ("Pod", "pod", True, ALL_VERBS)
    assert (pods["shortNames"], pods["categories"]) == (["po"], ["all"])
    assert resources["namespaces"]["namespaced"] is False
    assert "deletecollection" not in resources["namespaces"]["verbs"]
    assert resources["pods/status"] == {
        "name": "pods/status",
        "singularName": "",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ["get", "patch", "update"],
    }
    assert resources["namespaces/finalize"]["verbs"] == ["update"]


@pytest.mark.parametrize(
    ("path", "name", "kind", "short"),
    [
        ("/api/v1", "nodes", "Node", ["no"]),
        ("/api/v1", "configmaps", "ConfigMap", ["cm"]),
        ("/api/v1", "secrets", "Secret", None),
        ("/api/v1", "events", "Event", ["ev"]),
        ("/api/v1", "serviceaccounts", "ServiceAccount", ["sa"]),
        ("/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim", ["pvc"]),
        ("/api/v1", "persistentvolumes", "PersistentVolume", ["pv"]),
        ("/apis/apps/v1", "daemonsets", "DaemonSet", ["ds"]),
        ("/apis/apps/v1", "deployments", "Deployment", ["deploy"]),
        ("/apis/apps/v1", "replicasets", "ReplicaSet", ["rs"]),
        ("/apis/apps/v1", "statefulsets", "StatefulSet", ["sts"]),
        ("/apis/apps/v1", "controllerrevisions", "ControllerRevision", None),
        ("/apis/batch/v1", "cronjobs", "CronJob", ["cj"]),
        ("/apis/batch/v1", "jobs", "Job", None),
        ("/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", ["pdb"]),
        ("/apis/coordination.k8s.io/v1", "leases", "Lease", None),
        ("/apis/scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", ["pc"]),
        ("/apis/storage.k8s.io/v1", "storageclasses", "StorageClass", ["sc"]),
        ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", None),
        ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", ["crd", "crds"]),
    ],
)
async def test_every_kind_is_found(api: Api, path: str, name: str, kind: str, short: list[str] | None) -> None:
    found = (await resources_of(api, path))[name]
    assert (found["kind"], found["verbs"], found.get("shortNames")) == (kind, ALL_VERBS, short)


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ("/api/v1", "pods", "xPOwRZ+Yhw8="),
        ("/apis/apps/v1", "deployments", "8aSe+NMegvE="),
        ("/apis/events.k8s.io/v1", "events", "r2yiGXH7wu8="),  # stored as one of the core group
        ("/api/v1", "pods/status", None),
        ("/api/v1", "bindings", None),
        ("/apis/authentication.k8s.io/v1", "tokenreviews", None),
    ],
)
async def test_a_kind_says_in_which_version_it_is_stored(api: Api, path: str, name: str, expected: str | None) -> None:
    assert (await resources_of(api, path))[name].get("storageVersionHash") == expected


async def test_all_versions_of_a_custom_kind_are_stored_in_one(api: Api, group: str) -> None:
    body = widgets_definition(group)
    first = body["spec"]["versions"][0]
    body["spec"]["versions"] = [{**first, "name": "v2", "storage": False}, {**first, "name": "v1", "storage": True}]
    await install(api, body)
    digest = hashlib.sha256(f"{group}/v1/{body['spec']['names']['kind']}".encode()).digest()
    for version in ("v1", "v2"):
        (found,) = [one for one in (await read(api, f"/apis/{group}/{version}"))["resources"] if "/" not in one["name"]]
        assert found["storageVersionHash"] == base64.b64encode(digest[:8]).decode()
    await api.delete(CRDS, body["metadata"]["name"])


async def test_a_scale_is_of_another_group(api: Api) -> None:
    scale = (await resources_of(api, "/apis/apps/v1"))["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_everything_at_once(api: Api, path: str) -> None:
    reply = await api.request("GET", path, accept=f"{AGGREGATED},application/json")
    assert (reply.ok["kind"], reply.ok["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    assert reply.headers["Content-Type"] == AGGREGATED
    assert reply.headers["ETag"].startswith('"')
    names = [group["metadata"].get("name", "") for group in reply.items]
    assert names == [""] if path == "/api" else set(GROUPS) <= set(names)


async def test_everything_at_once_says_as_much_as_one_by_one(api: Api) -> None:
    reply = await api.request("GET", "/apis", accept=AGGREGATED)
    group = next(group for group in reply.items if group["metadata"]["name"] == "apps")
    (version,) = group["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    found = next(one for one in version["resources"] if one["resource"] == "deployments")
    assert (found["scope"], found["singularResource"], found["verbs"]) == ("Namespaced", "deployment", ALL_VERBS)
    assert (found["responseKind"]["kind"], found["shortNames"], found["categories"]) == ("Deployment", ["deploy"], ["all"])
    assert {one["subresource"]: one["responseKind"]["kind"] for one in found["subresources"]} == {
        "scale": "Scale",
        "status": "Deployment",
    }


async def test_what_was_already_read_is_not_sent_again(api: Api) -> None:
    first = await api.request("GET", "/apis", accept=AGGREGATED)
    again = await api.request("GET", "/apis", accept=AGGREGATED, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.code, again.raw) == (304, b"")


async def test_an_unknown_version_of_a_group_is_not_found(api: Api) -> None:
    assert (await api.request("GET", "/apis/apps/v9")).code == 404
    assert (await api.request("GET", "/apis/none.example.com")).code == 404


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_what_is_not_there_is_not_found_by_any_method(api: Api, method: str) -> None:
    """Only of what is there it can be said that it cannot be done."""
    for path in (
        "/apis/none.example.com",
        "/apis/none.example.com/v1",
        "/apis/none.example.com/v1/things/a",
        "/apis/apps/v9",
        "/apis/apps/v9/namespaces/default/deployments",
        "/api/v9",
        "/api/v1/nothings",
        "/api/v1/namespaces/default/pods/a/status/b",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/a",
        "/nothing",
        "/openapi/v3/nothing",
    ):
        body = {} if method in ("POST", "PUT", "PATCH") else None
        assert (await api.request(method, path, body)).code == 404, path
    assert (await api.request("PUT", "/apis/apps/v1", {})).code == 405


async def test_the_version_of_the_server(api: Api) -> None:
    answer = await read(api, "/version")
    assert answer["major"] == "1"
    assert answer["gitVersion"].startswith(f"v1.{answer['minor']}.")
    assert {"platform", "gitCommit", "buildDate"} <= answer.keys()


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
async def test_the_server_says_that_it_is_well(api: Api, path: str) -> None:
    reply = await api.request("GET", path)
    assert (reply.code, reply.raw) == (200, b"ok")
    verbose = await api.request("GET", path, verbose="true")
    assert b"[+]ping ok\n" in verbose.raw


async def test_the_index_of_schemas_leads_to_one(api: Api) -> None:
    paths = (await read(api, "/openapi/v3"))["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/policy/v1", "version"} <= paths.keys()
    address = paths["apis/apps/v1"]["serverRelativeURL"]
    assert address.startswith("/openapi/v3/apis/apps/v1?hash=")
    document = await read(api, address)
    assert document["openapi"].startswith("3.0")
    assert "/apis/apps/v1/namespaces/{namespace}/deployments/{name}" in document["paths"]
    kinds = {
        (kind["group"], kind["version"], kind["kind"])
        for schema in document["components"]["schemas"].values()
        for kind in schema.get("x-kubernetes-group-version-kind", [])
    }
    assert {("apps", "v1", "Deployment"), ("apps", "v1", "StatefulSet")} <= kinds
