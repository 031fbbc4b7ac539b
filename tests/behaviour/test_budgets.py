"""The status of a disruption budget follows its pods, and what their controllers want."""

import uuid
from typing import Any

import pytest

from tests.behaviour.crds import install, widgets_definition
from tests.behaviour.disruptions import budget, budget_status, numbers, running_pod
from tests.behaviour.manifests import owner, workload
from tests.engines.api import Api, Json
from tests.engines.resources import BUDGETS, CRDS, DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from tests.engines.waiting import eventually


async def becomes(api: Api, namespace: str, name: str, wanted: tuple[int, int, int, int], patience: float = 15) -> Json:
    async def look() -> Json:
        status = await budget_status(api, namespace, name)
        assert numbers(status) == wanted
        return status

    return await eventually(look, patience)


async def stuck(api: Api, resource: Resource, name: str, namespace: str, replicas: int) -> Json:
    """A controller of the pods that are labelled with its name; it wants more of them, and none that it makes is admitted."""
    body = workload(name, replicas)
    body["spec"]["template"]["spec"]["priorityClassName"] = "no-such-class"
    if resource is STATEFUL_SETS:
        body["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return (await api.create(resource, body, namespace)).ok


async def test_a_budget_says_what_it_allows(api: Api, namespace: str) -> None:
    for name in ("a", "b"):
        await running_pod(api, namespace, name, "x")
    await running_pod(api, namespace, "other", "y")
    await budget(api, namespace, "x", minAvailable=1)
    status = await becomes(api, namespace, "x", (2, 2, 1, 1))
    assert status["observedGeneration"] == 1
    (condition,) = status["conditions"]
    told = {field: condition[field] for field in ("type", "status", "reason", "message", "observedGeneration")}
    assert told == {
        "type": "DisruptionAllowed",
        "status": "True",
        "reason": "SufficientPods",
        "message": "",
        "observedGeneration": 1,
    }
    assert condition["lastTransitionTime"]
    assert "disruptedPods" not in status


async def test_it_follows_its_pods(api: Api, namespace: str) -> None:
    await budget(api, namespace, "x", minAvailable=1)
    status = await becomes(api, namespace, "x", (0, 0, 1, 0))
    assert (status["conditions"][0]["status"], status["conditions"][0]["reason"]) == ("False", "InsufficientPods")
    await running_pod(api, namespace, "a", "x")
    await running_pod(api, namespace, "b", "x")
    await becomes(api, namespace, "x", (2, 2, 1, 1))
    unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    await api.patch(PODS, "a", unready, namespace, "status")
    await becomes(api, namespace, "x", (2, 1, 1, 0))
    await api.delete(PODS, "b", namespace, {"gracePeriodSeconds": 0})
    await becomes(api, namespace, "x", (1, 0, 1, 0))


@pytest.mark.only_on("embedded")
async def test_it_notices_what_a_real_cluster_notices_only_with_the_next_event(api: Api, namespace: str) -> None:
    """A pod that loses its label, and a controller that is scaled."""
    parent = await stuck(api, REPLICA_SETS, "x", namespace, 5)
    await running_pod(api, namespace, "a", "x", of=parent)
    await running_pod(api, namespace, "b", "x", of=parent)
    await budget(api, namespace, "x", maxUnavailable=4)
    await becomes(api, namespace, "x", (5, 2, 1, 1))
    await api.patch(PODS, "a", {"metadata": {"labels": {"app": "y"}}}, namespace)
    await becomes(api, namespace, "x", (5, 1, 1, 0))
    await api.patch(REPLICA_SETS, "x", {"spec": {"replicas": 4}}, namespace, "scale")
    await becomes(api, namespace, "x", (4, 1, 0, 1))


async def test_a_pod_that_goes_is_not_healthy(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "a", "x")
    await running_pod(api, namespace, "b", "x")
    await budget(api, namespace, "x", minAvailable=1)
    await becomes(api, namespace, "x", (2, 2, 1, 1))
    await api.delete(PODS, "a", namespace)
    await becomes(api, namespace, "x", (2, 1, 1, 0))


async def test_it_follows_its_own_spec(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "a", "x")
    await budget(api, namespace, "x", minAvailable=1)
    await becomes(api, namespace, "x", (1, 1, 1, 0))
    await api.patch(BUDGETS, "x", {"spec": {"minAvailable": 0}}, namespace)
    status = await becomes(api, namespace, "x", (1, 1, 0, 1))
    assert status["observedGeneration"] == 2
    assert status["conditions"][0]["observedGeneration"] == 2
    await api.patch(BUDGETS, "x", {"spec": {"selector": {"matchLabels": {"app": "y"}}}}, namespace)
    await becomes(api, namespace, "x", (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, 0),
        ({}, 3),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}, 3),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}, 1),
    ],
    ids=["none", "empty", "some values", "other values"],
)
async def test_its_selector_may_be_of_any_shape(api: Api, namespace: str, selector: Json | None, expected: int) -> None:
    for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
        await running_pod(api, namespace, name, app)
    spec: Json = {"minAvailable": 0, **({"selector": selector} if selector is not None else {})}
    await api.create(BUDGETS, {"metadata": {"name": "all"}, "spec": spec}, namespace)
    await becomes(api, namespace, "all", (expected, expected, 0, expected))


@pytest.mark.parametrize("resource", [REPLICA_SETS, STATEFUL_SETS], ids=lambda resource: resource.kind)
@pytest.mark.parametrize(
    ("spec", "desired"), [({"maxUnavailable": 1}, 4), ({"maxUnavailable": "30%"}, 3), ({"minAvailable": "50%"}, 3)], ids=str
)
async def test_shares_are_of_what_the_controller_wants(
    api: Api, namespace: str, resource: Resource, spec: dict[str, Any], desired: int
) -> None:
    parent = await stuck(api, resource, "x", namespace, 5)
    for number in range(4):
        await running_pod(api, namespace, f"x-{number}", "x", of=parent)
    await budget(api, namespace, "x", **spec)
    await becomes(api, namespace, "x", (5, 4, desired, 4 - desired))


async def test_a_replica_set_of_a_deployment_counts_as_the_deployment(api: Api, namespace: str) -> None:
    deployment = await stuck(api, DEPLOYMENTS, "x", namespace, 8)
    body = workload("x", 3)
    body["spec"]["template"] = deployment["spec"]["template"]
    body["metadata"]["labels"] = {"app": "x"}
    body["metadata"]["ownerReferences"] = [owner(deployment, controller=True)]
    children = (await api.create(REPLICA_SETS, body, namespace)).ok
    await running_pod(api, namespace, "a", "x", of=children)
    await budget(api, namespace, "x", maxUnavailable="50%")
    await becomes(api, namespace, "x", (8, 1, 4, 0))


async def test_anything_that_can_be_scaled_may_be_the_controller(api: Api, namespace: str, group: str) -> None:
    definition = widgets_definition(group)
    version = definition["spec"]["versions"][0]
    version["subresources"] = {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    }
    version["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    things = await install(api, definition)
    parent = (await api.create(things, {"metadata": {"name": "one"}, "spec": {"replicas": 3}}, namespace)).ok
    await running_pod(api, namespace, "a", "x", of=parent, placed=False)
    await budget(api, namespace, "x", maxUnavailable=1)

    async def look() -> bool:
        # A real controller learns of new kinds every half a minute, and then looks again when something happens.
        (await api.patch(PODS, "a", {"metadata": {"annotations": {"looked": uuid.uuid4().hex}}}, namespace)).ok  # noqa: B018
        status = await budget_status(api, namespace, "x")
        assert numbers(status) == (3, 1, 2, 0), status
        return True

    await eventually(look, patience=150)
    await api.delete(CRDS, definition["metadata"]["name"])


async def test_pods_without_a_controller_have_no_share(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "a", "x")
    await budget(api, namespace, "x", maxUnavailable=1)
    await becomes(api, namespace, "x", (0, 1, 0, 0))


async def test_a_controller_that_cannot_be_scaled_makes_the_budget_refuse(api: Api, namespace: str) -> None:
    other = await running_pod(api, namespace, "other", "y")
    await running_pod(api, namespace, "a", "x", of=other)
    await budget(api, namespace, "x", maxUnavailable=1)

    async def failed() -> Json:
        conditions = (await budget_status(api, namespace, "x")).get("conditions", [])
        return next((one for one in conditions if one["reason"] == "SyncFailed"), {})

    condition = await eventually(failed)
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "False")
    assert condition["message"] == "pods does not implement the scale subresource"
    assert (await budget_status(api, namespace, "x"))["disruptionsAllowed"] == 0
