"""Nodes that fall silent, and their pods: on a real cluster its own controller manager does the same as ours does here."""

from collections.abc import Callable
from typing import Any

from herder.api import labels
from herder.api.world import timestamp
from tests.behaviour.manifests import pod
from tests.engines.resources import NODES, PODS
from tests.engines.waiting import eventually
from tests.machines.herd import TAINT, Herd, Json

Unique = Callable[..., str]
# 50 s of silence, a look every 5 s; 40 s of quarantine, a look every 20 s; and a busy machine.
LONG = 180.0
UNSCHEDULABLE = ("node.kubernetes.io/unschedulable", "NoSchedule")
CLOSED = ("node.kubernetes.io/unreachable", "NoSchedule")
EMPTIED = ("node.kubernetes.io/unreachable", "NoExecute")
OWN = (TAINT["key"], TAINT["effect"])
SILENT = f"{labels.SIMULATED}silent"


async def taints(herd: Herd, node: str) -> set[tuple[str, str]]:
    found = (await herd.api.get(NODES, node)).ok
    return {(one["key"], one["effect"]) for one in found["spec"].get("taints", ()) if one["effect"] != "PreferNoSchedule"}


async def has_taints(herd: Herd, node: str, *wanted: tuple[str, str], patience: float = LONG) -> None:
    async def look() -> bool:
        assert await taints(herd, node) == {OWN, *wanted}
        return True

    await eventually(look, patience)


async def change(herd: Herd, node: str, patch: Json) -> None:
    (await herd.api.patch(NODES, node, patch)).ok  # noqa: B018


async def cut_off(herd: Herd, node: str) -> None:
    """And taken for lost, without the wait for that."""
    await change(herd, node, {"metadata": {"annotations": {SILENT: "true"}}})
    condition = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": timestamp(1_900_000_000),
    }
    patch = {"status": {"conditions": [condition]}}
    (await herd.api.patch(NODES, node, patch, subresource="status", kind="strategic")).ok  # noqa: B018


async def add_taint(herd: Herd, node: str, key: str) -> None:
    await herd.api.patch(NODES, node, {"spec": {"taints": [{"key": key, "effect": "NoExecute"}]}}, kind="strategic")


async def run_pod(herd: Herd, node: str, name: str, **spec: Any) -> None:
    (await herd.api.create(PODS, pod(name, nodeName=node, **spec), herd.namespace)).ok  # noqa: B018
    await has_ready(herd, name, "True")


async def has_ready(herd: Herd, name: str, status: str) -> None:
    async def look() -> bool:
        found = (await herd.api.get(PODS, name, herd.namespace)).ok
        assert [one["status"] for one in found["status"].get("conditions", ()) if one["type"] == "Ready"] == [status]
        return True

    await eventually(look, LONG)


async def is_leaving(herd: Herd, name: str) -> Json:
    async def look() -> Json:
        found = (await herd.api.get(PODS, name, herd.namespace)).ok
        assert "deletionTimestamp" in found["metadata"]
        return found

    return await eventually(look, LONG)


async def is_gone(herd: Herd, name: str) -> None:
    async def look() -> bool:
        assert (await herd.api.get(PODS, name, herd.namespace)).code == 404
        return True

    await eventually(look, LONG)


def bears(key: str, seconds: int | None = None) -> Json:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **limit}


async def test_a_cordon_is_a_taint_for_as_long_as_it_lasts(herd: Herd, unique: Unique) -> None:
    node = await herd.node(unique("own"))
    await change(herd, node, {"spec": {"unschedulable": True}})
    await has_taints(herd, node, UNSCHEDULABLE)
    await change(herd, node, {"spec": {"unschedulable": None}})
    await has_taints(herd, node)


async def test_a_node_that_is_lost_is_closed_and_emptied_and_back_it_is_as_before(herd: Herd, unique: Unique) -> None:
    node = await herd.node(unique("own"))
    await run_pod(herd, node, "patient")
    await run_pod(herd, node, "hasty", tolerations=[bears(EMPTIED[0], 1)])
    await cut_off(herd, node)
    await has_taints(herd, node, CLOSED, EMPTIED)
    leaving = await is_leaving(herd, "hasty")
    why = [one["reason"] for one in leaving["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    assert why == ["DeletionByTaintManager"]
    # Nobody knows whether it still runs there, so it is not gone.
    assert (await herd.api.get(PODS, "hasty", herd.namespace)).code == 200
    assert "deletionTimestamp" not in (await herd.api.get(PODS, "patient", herd.namespace)).ok["metadata"]
    await change(herd, node, {"metadata": {"annotations": {SILENT: None}}})
    await has_taints(herd, node)
    await is_gone(herd, "hasty")


async def test_a_person_may_empty_a_node_by_a_taint(herd: Herd, unique: Unique) -> None:
    node = await herd.node(unique("own"))
    await run_pod(herd, node, "goes", terminationGracePeriodSeconds=1)
    await run_pod(herd, node, "stays", tolerations=[bears("mine")])
    await run_pod(herd, node, "goes-later", tolerations=[bears("mine", 3)], terminationGracePeriodSeconds=1)
    await add_taint(herd, node, "mine")
    await is_gone(herd, "goes")
    await is_gone(herd, "goes-later")
    assert "deletionTimestamp" not in (await herd.api.get(PODS, "stays", herd.namespace)).ok["metadata"]
    await has_ready(herd, "stays", "True")


async def test_who_vouches_that_a_lost_node_is_off_has_its_pods_removed(herd: Herd, unique: Unique) -> None:
    node = await herd.node(unique("own"))
    await run_pod(herd, node, "lost")
    await cut_off(herd, node)
    await has_taints(herd, node, CLOSED, EMPTIED)
    await add_taint(herd, node, labels.OUT_OF_SERVICE_TAINT)
    await is_gone(herd, "lost")


async def test_pods_of_a_node_that_is_gone_are_removed(herd: Herd, unique: Unique) -> None:
    node = await herd.node(unique("own"))
    await run_pod(herd, node, "orphan")
    (await herd.api.delete(NODES, node)).ok  # noqa: B018
    await is_gone(herd, "orphan")


async def test_a_node_that_does_not_renew_its_lease_is_taken_for_lost(herd: Herd, unique: Unique) -> None:
    node = await herd.node(unique("own"))
    await run_pod(herd, node, "there")
    await change(herd, node, {"metadata": {"annotations": {SILENT: "true"}}})
    await has_taints(herd, node, CLOSED, EMPTIED)
    await has_ready(herd, "there", "False")
    found = (await herd.api.get(NODES, node)).ok
    told = {one["type"]: (one["status"], one["reason"], one["message"]) for one in found["status"]["conditions"]}
    silence = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    assert told == dict.fromkeys(("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"), silence)
    await change(herd, node, {"metadata": {"annotations": {SILENT: None}}})
    await has_taints(herd, node)
    await has_ready(herd, "there", "True")
