"""Lists as tables, the way kubectl shows them."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.behaviour.manifests import absent_node, config_map, node, pod, workload
from tests.engines.api import Api, Json
from tests.engines.resources import BUDGETS, CONFIG_MAPS, CONTROLLER_REVISIONS, DEPLOYMENTS, NAMESPACES, NODES, PODS, SECRETS

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KUBECTL = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
AGE = re.compile(r"\d+[smh]")


def columns(table: Json, priority: int | None = None) -> list[str]:
    return [one["name"] for one in table["columnDefinitions"] if priority is None or one["priority"] == priority]


def cells(table: Json, row: int = 0) -> dict[str, Any]:
    return dict(zip(columns(table), table["rows"][row]["cells"], strict=True))


async def test_pods(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", schedulerName="nobody"), namespace)
    table = (await api.list(PODS, namespace, accept=KUBECTL)).ok
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"].isdigit()
    assert columns(table, 0) == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert columns(table, 1) == ["IP", "Node", "Nominated Node", "Readiness Gates"]
    row = cells(table)
    assert AGE.fullmatch(row.pop("Age"))
    assert row == {
        "Name": "a",
        "Ready": "0/1",
        "Status": "Pending",
        "Restarts": "0",
        **dict.fromkeys(["IP", "Node", "Nominated Node", "Readiness Gates"], "<none>"),
    }


async def test_a_pod_that_runs_and_one_that_is_going(api: Api, namespace: str) -> None:
    await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace)
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {"name": "main", "ready": True, "restartCount": 2, "image": "i", "imageID": "", "state": running}
    status = {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "containerStatuses": [container]}
    await api.patch(PODS, "a", {"status": status}, namespace, "status")
    row = cells((await api.get(PODS, "a", namespace, accept=TABLE)).ok)
    assert (row["Ready"], row["Status"], row["Restarts"]) == ("1/1", "Running", "2")
    assert (row["IP"], row["Node"]) == ("10.1.2.3", absent_node(namespace))
    await api.delete(PODS, "a", namespace)
    assert cells((await api.get(PODS, "a", namespace, accept=TABLE)).ok)["Status"] == "Terminating"


async def test_nodes(api: Api, unique: Callable[..., str]) -> None:
    name = unique("node")
    await api.create(NODES, node(name, labels={"node-role.kubernetes.io/worker": ""}))
    table = (await api.get(NODES, name, accept=TABLE)).ok
    assert columns(table, 0) == ["Name", "Status", "Roles", "Age", "Version"]
    assert columns(table, 1) == ["Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"]
    row = cells(table)
    assert (row["Name"], row["Roles"], row["Internal-IP"], row["OS-Image"]) == (name, "worker", "<none>", "<unknown>")
    assert row["Status"] in ("Unknown", "NotReady")  # a controller may have had its say already
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [condition], "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}]}
    await api.patch(NODES, name, {"status": status, "spec": {"unschedulable": True}}, "", "status")
    await api.patch(NODES, name, {"spec": {"unschedulable": True}})
    row = cells((await api.get(NODES, name, accept=TABLE)).ok)
    assert (row["Status"], row["Internal-IP"]) == ("Ready,SchedulingDisabled", "10.0.0.7")
    await api.delete(NODES, name)


async def test_revisions_show_whose_history_they_are(api: Api, namespace: str) -> None:
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "web", "uid": "1", "controller": True}
    for name, owners in (("alone", []), ("web-1", [owner])):
        # Held: its owner is nobody, and what has lost its owner is cleared away.
        metadata = {"name": name, "ownerReferences": owners, "finalizers": ["example.com/held"]}
        (await api.create(CONTROLLER_REVISIONS, {"metadata": metadata, "revision": 7, "data": {}}, namespace)).ok  # noqa: B018
    shown = [(await api.get(CONTROLLER_REVISIONS, name, namespace, accept=KUBECTL)).ok for name in ("alone", "web-1")]
    for name in ("alone", "web-1"):
        await api.patch(CONTROLLER_REVISIONS, name, {"metadata": {"finalizers": None}}, namespace)
    assert columns(shown[0]) == ["Name", "Controller", "Revision", "Age"]
    rows = [table["rows"][0]["cells"][:3] for table in shown]
    assert [[str(cell) for cell in row] for row in rows] == [
        ["alone", "<none>", "7"],
        ["web-1", "virtualmachinepool.kubevirt.io/web", "7"],
    ]


async def test_namespaces(api: Api, namespace: str) -> None:
    table = (await api.get(NAMESPACES, namespace, accept=TABLE)).ok
    assert columns(table) == ["Name", "Status", "Age"]
    assert table["rows"][0]["cells"][:2] == [namespace, "Active"]


async def test_config_maps_and_secrets(api: Api, namespace: str) -> None:
    await api.create(CONFIG_MAPS, config_map("a", {"k": "v", "l": "w"}), namespace)
    table = (await api.get(CONFIG_MAPS, "a", namespace, accept=TABLE)).ok
    assert columns(table) == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["a", 2]
    await api.create(SECRETS, {**config_map("a"), "stringData": {"k": "v"}}, namespace)
    table = (await api.get(SECRETS, "a", namespace, accept=TABLE)).ok
    assert columns(table) == ["Name", "Type", "Data", "Age"]
    assert table["rows"][0]["cells"][:3] == ["a", "Opaque", 1]


async def test_deployments_and_budgets(api: Api, namespace: str) -> None:
    await api.create(DEPLOYMENTS, workload("a"), namespace)
    table = (await api.get(DEPLOYMENTS, "a", namespace, accept=TABLE)).ok
    assert columns(table) == ["Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"]
    row = cells(table)
    assert (row["Name"], row["Ready"], row["Containers"], row["Selector"]) == ("a", "0/0", "main", "app=a")
    await api.create(BUDGETS, {"metadata": {"name": "a"}, "spec": {"maxUnavailable": "25%", "selector": {}}}, namespace)
    row = cells((await api.get(BUDGETS, "a", namespace, accept=TABLE)).ok)
    assert (row["Min Available"], row["Max Unavailable"], row["Allowed Disruptions"]) == ("N/A", "25%", 0)


async def test_a_row_brings_the_metadata_of_its_object(api: Api, namespace: str) -> None:
    created = (await api.create(SECRETS, config_map("a"), namespace)).ok
    (row,) = (await api.list(SECRETS, namespace, accept=TABLE)).ok["rows"]
    expected = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"]}
    assert row["object"] == expected


async def test_a_row_brings_as_much_as_was_asked_for(api: Api, namespace: str) -> None:
    created = (await api.create(SECRETS, config_map("a"), namespace)).ok
    (whole,) = (await api.list(SECRETS, namespace, accept=TABLE, includeObject="Object")).ok["rows"]
    assert whole["object"] == created
    (bare,) = (await api.list(SECRETS, namespace, accept=TABLE, includeObject="None")).ok["rows"]
    assert bare.get("object") is None
    (await api.list(SECRETS, namespace, accept=TABLE, includeObject="Some")).refused(400, "BadRequest")


async def test_pages_and_empty_tables(api: Api, namespace: str) -> None:
    assert (await api.list(SECRETS, namespace, accept=TABLE)).ok["rows"] == []
    for name in "ab":
        await api.create(SECRETS, config_map(name), namespace)
    first = (await api.list(SECRETS, namespace, accept=TABLE, limit=1)).ok
    assert first["metadata"]["remainingItemCount"] == 1
    second = (await api.list(SECRETS, namespace, accept=TABLE, **{"continue": first["metadata"]["continue"]})).ok
    assert [row["cells"][0] for row in first["rows"] + second["rows"]] == ["a", "b"]


async def test_a_watch_sends_the_columns_once(api: Api, namespace: str) -> None:
    for name in "ab":
        await api.create(SECRETS, config_map(name), namespace)
    async with api.watch(SECRETS, namespace, accept=TABLE) as watch:
        first, second = await watch.take(2)
        assert [event.object["kind"] for event in (first, second)] == ["Table", "Table"]
        assert columns(first.object) == ["Name", "Type", "Data", "Age"]
        assert not second.object.get("columnDefinitions")
        assert sorted(event.object["rows"][0]["cells"][0] for event in (first, second)) == ["a", "b"]
        await api.delete(SECRETS, "a", namespace)
        assert (await watch.next()).type == "DELETED"


async def test_a_refusal_is_no_table(api: Api, namespace: str) -> None:
    (await api.get(SECRETS, "absent", namespace, accept=KUBECTL)).refused(404, "NotFound")


@pytest.mark.parametrize("kind", ["PartialObjectMetadata", "PartialObjectMetadataList"])
async def test_metadata_alone_can_be_asked_for(api: Api, namespace: str, kind: str) -> None:
    created = (await api.create(SECRETS, config_map("a", labels={"x": "y"}), namespace)).ok
    accept = f"application/json;as={kind};v=v1;g=meta.k8s.io"
    reply = await (
        api.list(SECRETS, namespace, accept=accept) if "List" in kind else api.get(SECRETS, "a", namespace, accept=accept)
    )
    assert (reply.ok["kind"], reply.ok["apiVersion"]) == (kind, "meta.k8s.io/v1")
    item = reply.items[0] if "List" in kind else reply.ok
    assert item == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"]}
