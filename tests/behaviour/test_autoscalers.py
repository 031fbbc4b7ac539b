"""HorizontalPodAutoscalers as both engines store, default, refuse and show them."""

import pytest

from tests.behaviour.applying import apply
from tests.engines.api import Api, Json
from tests.engines.resources import AUTOSCALERS

TARGET: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nobody"}
HALF: Json = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


def autoscaler(name: str = "a", **spec: object) -> Json:
    return {"metadata": {"name": name}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, **spec}}


async def test_what_is_left_out_is_filled_in(api: Api, namespace: str) -> None:
    made = (await api.create(AUTOSCALERS, autoscaler(), namespace)).ok
    target = {"type": "Utilization", "averageUtilization": 80}
    assert made["spec"]["minReplicas"] == 1
    assert made["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    assert "behavior" not in made["spec"]
    assert made["status"]["desiredReplicas"] == 0


async def test_a_behavior_is_filled_in_for_both_directions_and_keeps_its_tolerance(api: Api, namespace: str) -> None:
    behavior = {"scaleDown": {"tolerance": "0.05", "selectPolicy": "Disabled"}}
    made = (await api.create(AUTOSCALERS, autoscaler(behavior=behavior), namespace)).ok["spec"]["behavior"]
    percent, pods = ({"type": kind, "value": value, "periodSeconds": 15} for kind, value in (("Percent", 100), ("Pods", 4)))
    assert made["scaleUp"] == {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent]}
    assert made["scaleDown"] == {"selectPolicy": "Disabled", "policies": [percent], "tolerance": "50m"}


REFUSED: dict[str, tuple[Json, str]] = {
    "no maximum": ({"maxReplicas": 0}, "spec.maxReplicas"),
    "a minimum of zero": ({"minReplicas": 0}, "spec.minReplicas"),
    "more at least than at most": ({"minReplicas": 4}, "spec.maxReplicas"),
    "a target without a group": ({"scaleTargetRef": {**TARGET, "apiVersion": "v1"}}, "spec.scaleTargetRef.apiVersion"),
    "a target without a name": ({"scaleTargetRef": {**TARGET, "name": ""}}, "spec.scaleTargetRef.name"),
    "a metric of no type": ({"metrics": [{**HALF, "type": "Nonsense"}]}, "spec.metrics[0].type"),
    "a window of two hours": (
        {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 7200}}},
        "spec.behavior.scaleUp.stabilizationWindowSeconds",
    ),
    "a negative tolerance": ({"behavior": {"scaleUp": {"tolerance": "-1"}}}, "spec.behavior.scaleUp.tolerance"),
    "a policy of nothing": (
        {"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 15}]}}},
        "spec.behavior.scaleUp.policies[0].value",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_makes_no_sense_is_refused_by_its_field(api: Api, namespace: str, case: str) -> None:
    spec, field = REFUSED[case]
    refused = (await api.create(AUTOSCALERS, autoscaler(**spec), namespace)).refused(422, "Invalid")
    assert field in {cause["field"] for cause in refused["causes"]}


OTHERS: dict[str, Json] = {
    "Pods": {"pods": {"metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
    "Object": {
        "object": {"metric": {"name": "hits"}, "describedObject": TARGET, "target": {"type": "Value", "value": "10"}},
    },
    "External": {"external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "10"}}},
    "ContainerResource": {
        "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}
    },
}


@pytest.mark.only_on("embedded")
@pytest.mark.parametrize("kind", OTHERS)
async def test_other_metrics_than_those_of_resources_are_refused_by_their_type(api: Api, namespace: str, kind: str) -> None:
    body = autoscaler(metrics=[HALF, {"type": kind, **OTHERS[kind]}])
    refused = (await api.create(AUTOSCALERS, body, namespace)).refused(422, "Invalid")
    (cause,) = refused["causes"]
    assert cause["field"] == "spec.metrics[1].type"
    assert f'Unsupported value: "{kind}": only metrics of type Resource are supported here' in cause["message"]


@pytest.mark.only_on("embedded")
async def test_there_is_an_end_to_metrics_and_policies(api: Api, namespace: str) -> None:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 15}
    body = autoscaler(metrics=[HALF] * 17, behavior={"scaleUp": {"policies": [policy] * 17}})
    refused = (await api.create(AUTOSCALERS, body, namespace)).refused(422, "Invalid")
    assert {cause["field"] for cause in refused["causes"]} == {"spec.metrics", "spec.behavior.scaleUp.policies"}


async def test_the_status_is_written_through_its_subresource_alone(api: Api, namespace: str) -> None:
    await api.create(AUTOSCALERS, {**autoscaler(), "status": {"desiredReplicas": 7}}, namespace)
    await api.patch(AUTOSCALERS, "a", {"status": {"desiredReplicas": 7}}, namespace)
    assert (await api.get(AUTOSCALERS, "a", namespace)).ok["status"]["desiredReplicas"] == 0
    path = AUTOSCALERS.path(namespace, "a", "status")
    merge = {"Content-Type": "application/merge-patch+json"}
    change = {"status": {"desiredReplicas": 7}, "spec": {"maxReplicas": 9}}
    changed = (await api.request("PATCH", path, change, headers=merge)).ok
    assert (changed["status"]["desiredReplicas"], changed["spec"]["maxReplicas"]) == (7, 3)


async def test_it_is_applied_and_its_metrics_are_one_list(api: Api, namespace: str) -> None:
    await apply(api, AUTOSCALERS, "a", autoscaler(metrics=[HALF]), namespace)
    memory = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1.5Gi"}}}
    applied = await apply(api, AUTOSCALERS, "a", autoscaler(metrics=[memory]), namespace)
    (metric,) = applied.ok["spec"]["metrics"]
    assert metric["resource"]["target"]["averageValue"] == "1536Mi"


async def test_the_table_shows_what_is_used_of_what_is_meant_to_be(api: Api, namespace: str) -> None:
    await api.create(AUTOSCALERS, autoscaler(metrics=[HALF], minReplicas=2), namespace)
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    shown = (await api.request("GET", AUTOSCALERS.path(namespace, "a"), headers=table)).ok
    assert [one["name"] for one in shown["columnDefinitions"]] == [
        *("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age")
    ]
    assert shown["rows"][0]["cells"][:6] == ["a", "Deployment/nobody", "cpu: <unknown>/50%", "2", 3, 0]


@pytest.mark.only_on("embedded")
async def test_of_another_version_is_said_which_one_there_is(api: Api, namespace: str) -> None:
    reply = await api.request("POST", f"/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers", autoscaler())
    assert reply.code == 404
    assert "horizontalpodautoscalers are served as autoscaling/v2, and not as autoscaling/v1" in reply.message
