"""What clients are told that the server serves."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from herder.server.builtins import BUILTINS, DESCRIPTIONS
from herder.server.discovery import Discovery, Document, version_priority
from herder.server.resources import Resource, Scale


def custom(group: str, version: str, plural: str = "things", **more: Any) -> Resource:
    names = {"plural": plural, "singular": plural.removesuffix("s"), "kind": plural.removesuffix("s").title()}
    return Resource(group=group, version=version, namespaced=True, builtin=False, **names, **more)


def body(document: Document | None) -> Any:
    assert document is not None
    return msgspec.json.decode(document.body)


def names(document: Document | None) -> list[str]:
    return [resource["name"] for resource in body(document)["resources"]]


@pytest.fixture
def discovery() -> Discovery:
    scale = Scale(spec_replicas="spec.n", status_replicas="status.n")
    things = custom("ex.io", "v1", status=True, scale=scale, short_names=("th",), categories=("all",))
    return Discovery((custom("ex.io", "v1beta1"), custom("b.io", "v1"), things, *reversed(BUILTINS)), "127.0.0.1:6443")


def test_the_core_group_names_its_version_and_where_the_server_is(discovery: Discovery) -> None:
    assert body(discovery.api_versions()) == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


def test_groups_come_in_the_order_of_kubernetes_and_then_crds_by_name(discovery: Discovery) -> None:
    groups = body(discovery.api_groups())
    assert [groups["kind"], groups["apiVersion"]] == ["APIGroupList", "v1"]
    assert [group["name"] for group in groups["groups"]] == [
        "apps",
        "events.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "policy",
        "rbac.authorization.k8s.io",
        "storage.k8s.io",
        "apiextensions.k8s.io",
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "b.io",
        "ex.io",
    ]


def test_a_group_prefers_its_most_mature_version(discovery: Discovery) -> None:
    stable = {"groupVersion": "ex.io/v1", "version": "v1"}
    assert body(discovery.api_group("ex.io")) == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "ex.io",
        "versions": [stable, {"groupVersion": "ex.io/v1beta1", "version": "v1beta1"}],
        "preferredVersion": stable,
    }


def test_versions_are_preferred_as_kubernetes_prefers_them() -> None:
    versions = ["v1alpha1", "foo1", "v11beta2", "v1", "v10", "v2", "v3beta1", "foo10", "v12alpha1", "v10beta3", "v11alpha2"]
    assert sorted(versions, key=version_priority, reverse=True) == [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "v1alpha1",
        "foo1",
        "foo10",
    ]


def test_core_resources_are_listed_with_the_subresources_that_are_served(discovery: Discovery) -> None:
    assert names(discovery.api_resources("", "v1")) == [
        "bindings",
        "configmaps",
        "events",
        "namespaces",
        "namespaces/finalize",
        "namespaces/status",
        "nodes",
        "nodes/status",
        "persistentvolumeclaims",
        "persistentvolumeclaims/status",
        "persistentvolumes",
        "persistentvolumes/status",
        "pods",
        "pods/attach",
        "pods/binding",
        "pods/eviction",
        "pods/log",
        "pods/status",
        "secrets",
        "serviceaccounts",
        "serviceaccounts/token",
    ]


def test_a_resource_tells_its_names_scope_and_verbs(discovery: Discovery) -> None:
    entries = {entry["name"]: entry for entry in body(discovery.api_resources("", "v1"))["resources"]}
    assert entries["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["po"],
        "categories": ["all"],
        "storageVersionHash": "xPOwRZ+Yhw8=",
    }
    assert "deletecollection" not in entries["namespaces"]["verbs"]
    assert entries["namespaces/finalize"]["verbs"] == ["update"]


def test_the_scale_of_a_resource_is_of_another_group(discovery: Discovery) -> None:
    entries = {entry["name"]: entry for entry in body(discovery.api_resources("ex.io", "v1"))["resources"]}
    assert entries["things/scale"] == {
        "name": "things/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }


def test_what_is_not_served_is_not_found(discovery: Discovery) -> None:
    assert discovery.api_group("nope.io") is None
    assert discovery.api_group("") is None
    assert discovery.api_resources("apps", "v9") is None
    assert discovery.api_resources("nope.io", "v1") is None


def test_everything_at_once_holds_all_that_the_single_lists_hold(discovery: Discovery) -> None:
    items = [*body(discovery.aggregated_core())["items"], *body(discovery.aggregated_groups())["items"]]
    for item in items:
        group = item["metadata"].get("name", "")
        for version in item["versions"]:
            found: list[str] = []
            for entry in version["resources"]:
                found.append(entry["resource"])
                found += [f"{entry['resource']}/{one['subresource']}" for one in entry.get("subresources", ())]
            assert found == names(discovery.api_resources(group, version["version"]))


def test_an_aggregated_resource_says_what_it_answers_with(discovery: Discovery) -> None:
    document = discovery.aggregated_groups()
    assert document.content_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    things = body(document)["items"][-1]["versions"][0]["resources"][0]
    own = {"group": "ex.io", "version": "v1", "kind": "Thing"}
    assert things["responseKind"] == own
    assert things["scope"] == "Namespaced"
    assert things["subresources"] == [
        {
            "subresource": "scale",
            "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "verbs": ["get", "patch", "update"],
        },
        {"subresource": "status", "responseKind": own, "verbs": ["get", "patch", "update"]},
    ]


def test_the_etag_is_the_hash_of_the_body_and_changes_with_the_crds(discovery: Discovery) -> None:
    document = discovery.aggregated_groups()
    assert document.etag == hashlib.sha512(document.body).hexdigest().upper()
    assert discovery.aggregated_groups() is document
    assert Discovery(BUILTINS, "127.0.0.1:6443").aggregated_groups().etag != document.etag


def test_every_built_in_kind_has_a_description_of_its_own() -> None:
    assert {(resource.group, resource.kind) for resource in BUILTINS} == set(DESCRIPTIONS)
    assert all(text.endswith(".") for text in DESCRIPTIONS.values())
