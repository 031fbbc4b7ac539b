"""What becomes of machines when nodes go, are silent, or are fenced."""

from collections.abc import Callable

from herder.api import labels
from herder.api.world import timestamp
from tests.engines.resources import NODES, PODS
from tests.machines.herd import TAINT, Herd, Json

Unique = Callable[..., str]


async def _pair(herd: Herd, unique: Unique) -> tuple[str, str, str]:
    """Two nodes of the test's own, and the label by which machines choose them."""
    label = unique("own")
    return label, await herd.node(label), await herd.node(label)


async def _cut_off(herd: Herd, node: str) -> None:
    """As the node lifecycle sees a node that does not renew its lease, without the wait for that."""
    annotations = {f"{labels.SIMULATED}silent": "true"}
    (await herd.api.patch(NODES, node, {"metadata": {"annotations": annotations}})).ok  # noqa: B018
    moment = timestamp(1_900_000_000)
    condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "", "lastTransitionTime": moment}
    patch = {"status": {"conditions": [condition]}}
    (await herd.api.patch(NODES, node, patch, subresource="status", kind="strategic")).ok  # noqa: B018


async def _reconnect(herd: Herd, node: str) -> None:
    annotations = {f"{labels.SIMULATED}silent": None}
    (await herd.api.patch(NODES, node, {"metadata": {"annotations": annotations}})).ok  # noqa: B018


async def test_a_machine_whose_node_is_deleted_runs_on_another(herd: Herd, unique: Unique) -> None:
    label, *nodes = await _pair(herd, unique)
    await herd.make(nodeSelector={label: "yes"})
    first = await herd.running()
    lost = first["status"]["nodeName"]
    assert lost in nodes
    (await herd.api.delete(NODES, lost)).ok  # noqa: B018
    second = await herd.running(but=first["metadata"]["uid"])
    assert second["status"]["nodeName"] == next(node for node in nodes if node != lost)
    await herd.gone(PODS, first["status"]["launcherPodName"])
    await _is_gone(herd, lost)


async def _is_gone(herd: Herd, node: str) -> None:
    async def look() -> bool:
        return (await herd.api.get(NODES, node)).code == 404

    await herd.eventually(look)


async def test_a_node_that_is_deleted_stays_until_its_guest_has_ended(herd: Herd, unique: Unique) -> None:
    label, *_ = await _pair(herd, unique)
    await herd.make(nodeSelector={label: "yes"}, simulated={"shutdown": "4s"})
    first = await herd.running()
    lost = first["status"]["nodeName"]
    (await herd.api.delete(NODES, lost)).ok  # noqa: B018

    async def not_ready() -> bool:
        node = (await herd.api.get(NODES, lost)).ok
        assert node["metadata"]["finalizers"] == [labels.NODE_FINALIZER]
        return any(one["type"] == "Ready" and one["reason"] == "NodeDeleted" for one in node["status"]["conditions"])

    await herd.eventually(not_ready)
    instance = await herd.instance()
    assert instance is not None
    assert instance["metadata"]["uid"] == first["metadata"]["uid"], "it is not started anywhere else while it runs"
    second = await herd.running(but=first["metadata"]["uid"])
    assert second["status"]["nodeName"] != lost
    await _is_gone(herd, lost)


async def test_a_silent_node_that_is_deleted_goes_and_its_machine_runs_on_another(herd: Herd, unique: Unique) -> None:
    label, *_ = await _pair(herd, unique)
    await herd.make(nodeSelector={label: "yes"})
    first = await herd.running()
    lost = first["status"]["nodeName"]
    await _cut_off(herd, lost)
    await herd.shows("Unknown", reason="NodeNotFenced")
    (await herd.api.delete(NODES, lost)).ok  # noqa: B018
    await _is_gone(herd, lost)
    second = await herd.running(but=first["metadata"]["uid"])
    assert second["status"]["nodeName"] != lost


async def test_a_node_that_vanishes_while_a_guest_starts_does_not_keep_the_machine(herd: Herd, unique: Unique) -> None:
    label, *nodes = await _pair(herd, unique)
    await herd.make(nodeSelector={label: "yes"}, simulated={"boot": "3s"})
    first = await herd.phase("Scheduled")
    lost = first["status"]["nodeName"]
    (await herd.api.delete(NODES, lost)).ok  # noqa: B018
    second = await herd.phase("Running", but=first["metadata"]["uid"])
    assert second["status"]["nodeName"] != lost
    assert second["status"]["nodeName"] in nodes


async def test_a_machine_on_a_silent_node_is_not_started_a_second_time(herd: Herd, unique: Unique) -> None:
    label, *_ = await _pair(herd, unique)
    await herd.make(nodeSelector={label: "yes"})
    first = await herd.running()
    silent = first["status"]["nodeName"]
    await _cut_off(herd, silent)
    unknown = await herd.shows("Unknown", reason="NodeNotFenced")
    assert f"node {silent} does not answer" in unknown["status"]["message"]
    assert [pod["metadata"]["name"] for pod in await herd.pods()] == [first["status"]["launcherPodName"]]
    await _reconnect(herd, silent)
    back = await herd.running()
    assert back["metadata"]["uid"] == first["metadata"]["uid"]


async def test_the_taint_out_of_service_lets_a_machine_leave_its_node(herd: Herd, unique: Unique) -> None:
    label, *nodes = await _pair(herd, unique)
    await herd.make(nodeSelector={label: "yes"})
    first = await herd.running()
    lost = first["status"]["nodeName"]
    taint = {"key": labels.OUT_OF_SERVICE_TAINT, "value": "nodeshutdown", "effect": "NoExecute"}
    (await herd.api.patch(NODES, lost, {"spec": {"taints": [TAINT, taint]}})).ok  # noqa: B018
    second = await herd.running(but=first["metadata"]["uid"])
    assert second["status"]["nodeName"] != lost
    assert second["status"]["nodeName"] in nodes


async def test_a_node_as_a_person_writes_it_offers_what_is_written(herd: Herd, unique: Unique) -> None:
    label = unique("own")
    small = await herd.node(label, capacity={"cpu": "1", "memory": "300Mi", "pods": "10"})
    await herd.make(nodeSelector={label: "yes"})
    first = await herd.running()
    assert first["status"]["nodeName"] == small
    await herd.make(name="second", nodeSelector={label: "yes"})
    waiting = await herd.shows("ErrorUnschedulable", "second", reason="Unschedulable")
    assert "1 Insufficient memory" in waiting["status"]["message"]
    await herd.patch("vm", {"spec": {"runStrategy": "Halted"}})
    await herd.running("second")


async def test_a_node_that_comes_back_under_its_name_is_a_new_node(herd: Herd, unique: Unique) -> None:
    label = unique("own")
    name = await herd.node(label)
    await herd.make(nodeSelector={label: "yes"})
    first = await herd.running()
    (await herd.api.delete(NODES, name)).ok  # noqa: B018
    await herd.gone(PODS, first["status"]["launcherPodName"])
    await herd.shows("ErrorUnschedulable")
    metadata: Json = {"name": name, "labels": {labels.RUNTIME: "simulated", label: "yes"}}
    (await herd.api.create(NODES, {"metadata": metadata, "spec": {"taints": [TAINT]}})).ok  # noqa: B018
    second = await herd.running(but=first["metadata"]["uid"])
    assert second["status"]["nodeName"] == name


async def test_a_node_that_two_schedulers_overfill_runs_what_it_has_room_for(herd: Herd, unique: Unique) -> None:
    """They did not know of each other: all three are bound, and the node looks again."""
    node = await herd.node(unique("own"), capacity={"cpu": "1", "memory": "1Gi", "pods": "10"})
    wanted = {"name": "main", "image": "registry.example.com/app:1", "resources": {"requests": {"cpu": "400m"}}}
    for name in ("a", "b", "c"):
        document = {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [wanted]}}
        (await herd.api.create(PODS, document, herd.namespace)).ok  # noqa: B018

    async def look() -> bool:
        found = [(one["status"]["phase"], one["status"].get("reason", "")) for one in await herd.pods()]
        assert sorted(found) == [("Failed", "OutOfcpu"), ("Running", ""), ("Running", "")]
        return True

    await herd.eventually(look)
