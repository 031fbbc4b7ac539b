"""Pods that are no machines. On simulated nodes their containers are said to run, and nothing runs in them."""

from typing import Any

from herder.api import labels
from herder.api.defaults import SCHEDULER_NAME
from tests.behaviour.manifests import container, meta
from tests.engines.api import Json
from tests.engines.resources import BUDGETS, PODS
from tests.machines.herd import Herd

APP = {"app": "web"}


async def put(herd: Herd, name: str, delay: int, **spec: Any) -> None:
    probe = {"tcpSocket": {"port": 80}, "initialDelaySeconds": delay}
    tolerates = [{"key": labels.VM_HOST_TAINT, "operator": "Exists"}]
    placed = {"schedulerName": SCHEDULER_NAME, "nodeSelector": {labels.RUNTIME: "simulated"}, "tolerations": tolerates}
    body = {"containers": [container(readinessProbe=probe)], **placed, **spec}
    await herd.api.create(PODS, {"metadata": meta(name, labels=APP), "spec": body}, herd.namespace)


async def becomes(herd: Herd, name: str, **wanted: str) -> None:
    """With conditions of this status."""

    async def look() -> bool:
        status = (await herd.api.get(PODS, name, herd.namespace)).ok["status"]
        told = {one["type"]: one["status"] for one in status.get("conditions", ())}
        assert status["phase"] == "Running"
        assert {kind: told.get(kind) for kind in wanted} == wanted
        return True

    await herd.eventually(look)


async def test_a_pod_whose_readiness_probe_was_not_asked_yet_is_not_healthy_for_a_budget(herd: Herd) -> None:
    budget = {"metadata": meta("web"), "spec": {"minAvailable": 1, "selector": {"matchLabels": APP}}}
    await herd.api.create(BUDGETS, budget, herd.namespace)
    await put(herd, "slow", 3600)
    await put(herd, "quick", 1)
    await becomes(herd, "slow", Ready="False", ContainersReady="False")
    await becomes(herd, "quick", Ready="True", ContainersReady="True")

    async def counted() -> Json:
        status = (await herd.api.get(BUDGETS, "web", herd.namespace)).ok["status"]
        numbers = {name: status[name] for name in ("expectedPods", "currentHealthy", "disruptionsAllowed")}
        assert numbers == {"expectedPods": 2, "currentHealthy": 1, "disruptionsAllowed": 0}
        return numbers

    await herd.eventually(counted)


async def test_a_pod_with_a_readiness_gate_is_ready_when_somebody_says_so(herd: Herd) -> None:
    gate = "lb.example.com/in"
    await put(herd, "gated", 0, readinessGates=[{"conditionType": gate}])
    await becomes(herd, "gated", Ready="False", ContainersReady="True")
    told = {"status": {"conditions": [{"type": gate, "status": "True"}]}}
    await herd.patch("gated", told, PODS, "strategic", "status")
    await becomes(herd, "gated", Ready="True", ContainersReady="True")
