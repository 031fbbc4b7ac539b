"""What the API keeps of the metadata a client sends, and when the generation counts."""

from collections.abc import Callable

import pytest

from tests.behaviour.manifests import config_map, node, pod, workload
from tests.engines.api import Api
from tests.engines.resources import (
    BUDGETS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)

WORKLOADS = [DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS]


async def test_a_client_cannot_choose_uid_time_or_generation(api: Api, namespace: str) -> None:
    chosen = {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9, "selfLink": "/mine"}
    created = (await api.create(DEPLOYMENTS, {**workload("a"), "metadata": {"name": "a", **chosen}}, namespace)).ok["metadata"]
    assert created["uid"] != "mine"
    assert created["creationTimestamp"] > "2020"
    assert created["generation"] == 1


async def test_an_update_keeps_uid_and_time(api: Api, namespace: str) -> None:
    created = (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok["metadata"]
    after = (await api.update(CONFIG_MAPS, config_map("a", {"k": "v"}, creationTimestamp="2001-01-01T00:00:00Z"), namespace)).ok
    assert after["metadata"]["creationTimestamp"] == created["creationTimestamp"]
    assert after["metadata"]["uid"] == created["uid"]


@pytest.mark.parametrize("resource", WORKLOADS, ids=lambda resource: resource.kind)
async def test_the_generation_counts_changes_of_the_spec_alone(api: Api, namespace: str, resource: Resource) -> None:
    assert (await api.create(resource, workload("a"), namespace)).ok["metadata"]["generation"] == 1
    labelled = await api.patch(resource, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)
    assert labelled.ok["metadata"]["generation"] == 1
    changed = await api.patch(resource, "a", {"spec": {"minReadySeconds": 5}}, namespace)
    assert changed.ok["metadata"]["generation"] == 2
    same = await api.patch(resource, "a", {"spec": {"minReadySeconds": 5}}, namespace)
    assert same.ok["metadata"]["generation"] == 2
    status = await api.patch(resource, "a", {"status": {"observedGeneration": 2}}, namespace, "status")
    assert status.ok["metadata"]["generation"] == 2
    # Of some flags "no" is another answer than none.
    for flag, generation in (("hostNetwork", 2), ("automountServiceAccountToken", 3)):
        told = await api.patch(resource, "a", {"spec": {"template": {"spec": {flag: False}}}}, namespace)
        assert told.ok["metadata"]["generation"] == generation


async def test_the_generation_of_a_deployment_counts_changes_of_its_annotations_too(api: Api, namespace: str) -> None:
    patch = {"metadata": {"annotations": {"x": "y"}}}
    for resource, generation in ((DEPLOYMENTS, 2), (REPLICA_SETS, 1), (STATEFUL_SETS, 1)):
        await api.create(resource, workload("a"), namespace)
        assert (await api.patch(resource, "a", patch, namespace)).ok["metadata"]["generation"] == generation


async def test_pods_and_budgets_have_a_generation(api: Api, namespace: str) -> None:
    assert (await api.create(PODS, pod("a"), namespace)).ok["metadata"]["generation"] == 1
    budget = {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    assert (await api.create(BUDGETS, budget, namespace)).ok["metadata"]["generation"] == 1
    assert (await api.patch(BUDGETS, "a", {"spec": {"minAvailable": 2}}, namespace)).ok["metadata"]["generation"] == 2


async def test_config_maps_and_nodes_have_none(api: Api, namespace: str, unique: Callable[..., str]) -> None:
    assert "generation" not in (await api.create(CONFIG_MAPS, config_map("a"), namespace)).ok["metadata"]
    name = unique()
    assert "generation" not in (await api.create(NODES, node(name))).ok["metadata"]
    await api.delete(NODES, name)


async def test_a_namespace_is_labelled_with_its_name(api: Api, namespace: str) -> None:
    assert (await api.get(NAMESPACES, namespace)).ok["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace}


@pytest.mark.parametrize(
    ("labels", "field"),
    [
        ({"ok": "not valid!"}, "metadata.labels"),
        ({"not valid!": "ok"}, "metadata.labels"),
        ({"ok": "x" * 64}, "metadata.labels"),
        ({"a/b/c": "ok"}, "metadata.labels"),
    ],
    ids=["value", "key", "long", "slashes"],
)
async def test_a_bad_label_is_invalid(api: Api, namespace: str, labels: dict[str, str], field: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map("a", labels=labels), namespace)
    reply.refused(422, "Invalid")
    assert set(reply.causes) == {("FieldValueInvalid", field)}


async def test_a_bad_annotation_key_is_invalid_but_its_value_may_be_anything(api: Api, namespace: str) -> None:
    assert (await api.create(CONFIG_MAPS, config_map("a", annotations={"ok": "any thing! {}"}), namespace)).code == 201
    reply = await api.create(CONFIG_MAPS, config_map("b", annotations={"not valid!": ""}), namespace)
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueInvalid", "metadata.annotations")]


async def test_an_owner_reference_must_be_complete(api: Api, namespace: str) -> None:
    reply = await api.create(CONFIG_MAPS, config_map("a", ownerReferences=[{"apiVersion": "v1", "kind": "Pod"}]), namespace)
    reply.refused(422, "Invalid")
    assert set(reply.causes) == {
        ("FieldValueInvalid", "metadata.ownerReferences.name"),
        ("FieldValueInvalid", "metadata.ownerReferences.uid"),
    }


async def test_only_one_owner_can_be_the_controller(api: Api, namespace: str) -> None:
    one = {"apiVersion": "v1", "kind": "Pod", "controller": True}
    owners = [{**one, "name": "a", "uid": "1"}, {**one, "name": "b", "uid": "2"}]
    reply = await api.create(CONFIG_MAPS, config_map("a", ownerReferences=owners), namespace)
    reply.refused(422, "Invalid")
    assert reply.causes == [("FieldValueInvalid", "metadata.ownerReferences")]
