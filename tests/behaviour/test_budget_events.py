"""What whoever keeps the budgets tells about them, and a pod that was to go and did not."""

from datetime import UTC, datetime

import pytest

from tests.behaviour.disruptions import budget, condition_of, numbers, running_pod
from tests.behaviour.disruptions import budget_status as status_of
from tests.engines.api import Api, Json
from tests.engines.resources import BUDGETS, EVENTS, PODS
from tests.engines.waiting import eventually

LONG_AGO = "2020-01-01T00:00:00Z"


async def told(api: Api, namespace: str, name: str, reason: str) -> Json:
    async def look() -> Json:
        found = (await api.list(EVENTS, namespace, fieldSelector=f"involvedObject.name={name},reason={reason}")).ok["items"]
        return found[0] if found else {}

    return await eventually(look)


async def untold(api: Api, namespace: str, name: str) -> set[str]:
    found = (await api.list(EVENTS, namespace, fieldSelector=f"involvedObject.name={name}")).ok["items"]
    return {event["reason"] for event in found}


async def test_a_budget_without_pods_says_so(api: Api, namespace: str) -> None:
    made = await budget(api, namespace, "x", minAvailable=1)
    event = await told(api, namespace, "x", "NoPods")
    assert (event["type"], event["message"]) == ("Normal", "No matching pods found")
    assert event["source"] == {"component": "controllermanager"}
    about = event["involvedObject"]
    assert (about["kind"], about["apiVersion"], about["uid"]) == ("PodDisruptionBudget", "policy/v1", made["metadata"]["uid"])
    assert event["metadata"]["name"].startswith("x.")
    assert event["count"] >= 1 and event["firstTimestamp"] and event["lastTimestamp"]


async def test_what_is_told_again_is_counted(api: Api, namespace: str) -> None:
    await budget(api, namespace, "x", minAvailable=1)
    first = await told(api, namespace, "x", "NoPods")
    for number in range(3):
        body = {"metadata": {"annotations": {"number": str(number)}}}
        await api.patch(BUDGETS, "x", body, namespace)

    async def counted() -> bool:
        again = await told(api, namespace, "x", "NoPods")
        return again["metadata"]["name"] == first["metadata"]["name"] and again["count"] > first["count"]

    await eventually(counted)


async def test_a_controller_that_cannot_be_scaled_is_told(api: Api, namespace: str) -> None:
    other = await running_pod(api, namespace, "other", "y")
    await running_pod(api, namespace, "a", "x", of=other)
    await budget(api, namespace, "x", maxUnavailable=1)
    event = await told(api, namespace, "x", "CalculateExpectedPodCountFailed")
    why = "pods does not implement the scale subresource"
    assert (event["type"], event["message"]) == ("Warning", f"Failed to calculate the number of expected pods: {why}")


@pytest.mark.parametrize(
    ("selector", "shown"),
    [
        (
            {"matchLabels": {"app": "x"}},
            "&LabelSelector{MatchLabels:map[string]string{app: x,},MatchExpressions:[]LabelSelectorRequirement{},}",
        ),
        (
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}, {"key": "app", "operator": "Exists"}]},
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{"
            "LabelSelectorRequirement{Key:app,Operator:In,Values:[x y],},"
            "LabelSelectorRequirement{Key:app,Operator:Exists,Values:[],},},}",
        ),
    ],
    ids=["labels", "expressions"],
)
async def test_pods_without_a_controller_are_told_where_a_share_of_them_is_asked_for(
    api: Api, namespace: str, selector: Json, shown: str
) -> None:
    await running_pod(api, namespace, "a", "x")
    await api.create(BUDGETS, {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": selector}}, namespace)
    event = await told(api, namespace, "b", "UnmanagedPods")
    assert event["type"] == "Warning"
    assert event["message"] == (
        f"Pods selected by this PodDisruptionBudget (selector: {shown}) were found to be unmanaged. As a result, the status of the "
        "PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set "
        '".spec.minAvailable" field of the PDB to an integer value.'
    )


async def test_nothing_is_told_of_a_budget_that_can_be_counted(api: Api, namespace: str) -> None:
    await running_pod(api, namespace, "a", "x")
    await budget(api, namespace, "x", minAvailable=1)

    async def counted() -> bool:
        return numbers(await status_of(api, namespace, "x")) == (1, 1, 1, 0)

    await eventually(counted)
    await budget(api, namespace, "y", minAvailable=1)
    # Told after what would have been told of the first.
    await told(api, namespace, "y", "NoPods")
    assert await untold(api, namespace, "x") == set()


async def test_a_pod_of_two_budgets_is_told(api: Api, namespace: str) -> None:
    for name in ("one", "two"):
        await budget(api, namespace, "x", name, minAvailable=0)
    await told(api, namespace, "two", "NoPods")
    await running_pod(api, namespace, "a", "x")
    event = await told(api, namespace, "a", "MultiplePodDisruptionBudgets")
    assert event["type"] == "Warning"
    assert event["message"].startswith(f'Pod "{namespace}"/"a" matches multiple PodDisruptionBudgets.')
    assert (event["involvedObject"]["kind"], event["involvedObject"]["apiVersion"]) == ("Pod", "v1")


# --- a pod that was to go --------------------------------------------------------------------------------------------------------


async def disrupted(api: Api, namespace: str, name: str, since: str, reason: str, phase: str = "Running") -> Json:
    await running_pod(api, namespace, name, "x")
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "told", "lastTransitionTime": since}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}, target]}
    return (await api.patch(PODS, name, {"status": status}, namespace, "status")).ok


async def test_a_pod_that_did_not_go_in_time_is_no_longer_said_to_go(api: Api, namespace: str) -> None:
    before = await disrupted(api, namespace, "a", LONG_AGO, "EvictionByEvictionAPI")

    async def reset() -> Json:
        pod = (await api.get(PODS, "a", namespace)).ok
        return pod if condition_of(pod, "DisruptionTarget")["status"] == "False" else {}

    after = await eventually(reset)
    condition = condition_of(after, "DisruptionTarget")
    assert condition["lastTransitionTime"] > LONG_AGO
    assert {"reason", "message"} & condition.keys() == set()
    assert condition["observedGeneration"] == before["metadata"]["generation"]
    assert condition_of(after, "Ready")["status"] == "True"


async def test_one_that_the_kubelet_ends_or_that_has_ended_stays_so(api: Api, namespace: str) -> None:
    await disrupted(api, namespace, "kubelet", LONG_AGO, "TerminationByKubelet")
    await disrupted(api, namespace, "ended", LONG_AGO, "EvictionByEvictionAPI", "Failed")
    await disrupted(api, namespace, "recent", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "EvictionByEvictionAPI")
    await disrupted(api, namespace, "stale", LONG_AGO, "PreemptionByScheduler")

    async def targets() -> dict[str, str]:
        pods = (await api.list(PODS, namespace)).ok["items"]
        found = {pod["metadata"]["name"]: condition_of(pod, "DisruptionTarget")["status"] for pod in pods}
        return found if found["stale"] == "False" else {}

    assert await eventually(targets) == {"kubelet": "True", "ended": "True", "recent": "True", "stale": "False"}
