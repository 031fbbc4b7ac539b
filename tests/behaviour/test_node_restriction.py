"""A node's agent writes its own node and the status of its own pods. Trying to write more."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.behaviour.manifests import pod
from tests.behaviour.nodes import Agent, agent_of, bound_pod
from tests.engines.api import Api, Json
from tests.engines.credentials import grant, request_token, rule, user
from tests.engines.engine import Engine
from tests.engines.resources import CLAIMS, LEASES, NODES, PODS, SERVICE_ACCOUNTS


@pytest.fixture
async def agent(engine: Engine, unique: Callable[..., str]) -> AsyncIterator[Agent]:
    async with agent_of(engine, unique("mine")) as connected:
        yield connected


@pytest.fixture
async def other(api: Api, unique: Callable[..., str]) -> str:
    name = unique("other")
    (await api.create(NODES, {"metadata": {"name": name}})).ok  # noqa: B018
    return name


# --- its node --------------------------------------------------------------------------------------------------------------------


async def test_it_makes_its_own_node_alone(agent: Agent, unique: Any) -> None:
    name = unique("foreign")
    refusal = await agent.api.create(NODES, {"metadata": {"name": name}})
    refusal.refused(403, "Forbidden")
    assert refusal.message == f'nodes "{name}" is forbidden: node "{agent.name}" is not allowed to modify node "{name}"'
    (await agent.register()).ok  # noqa: B018


async def test_it_changes_its_own_node_alone(agent: Agent, other: str) -> None:
    (await agent.register()).ok  # noqa: B018
    change = {"metadata": {"annotations": {"a": "b"}}}
    said = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert (await agent.api.patch(NODES, agent.name, change)).code == 200
    assert (await agent.api.patch(NODES, agent.name, said, subresource="status", kind="strategic")).code == 200
    for reply in (
        await agent.api.patch(NODES, other, change),
        await agent.api.patch(NODES, other, said, subresource="status", kind="strategic"),
        await agent.api.patch(NODES, other, {"spec": {"unschedulable": True}}),
        await agent.api.update(NODES, {"metadata": {"name": other}}),
        await agent.api.delete(NODES, other),
    ):
        reply.refused(403, "Forbidden")


ALLOWED = [
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "topology.kubernetes.io/zone",
    "node.kubernetes.io/instance-type",
    "kubelet.kubernetes.io/x",
    "a.node.kubernetes.io/x",
    "herder.dev/runtime",
    "kubevirt.io/schedulable",
    "cpu-model.node.kubevirt.io/Penryn",
    "example.com/x",
    "plain",
]
FORBIDDEN = [
    "node-restriction.kubernetes.io/secure",
    "a.node-restriction.kubernetes.io/secure",
    "node-role.kubernetes.io/control-plane",
    "kubernetes.io/role",
    "example.k8s.io/x",
]


@pytest.mark.parametrize("label", ALLOWED)
async def test_labels_that_a_node_may_give_itself(agent: Agent, label: str) -> None:
    (await agent.register(labels={label: "a"})).ok  # noqa: B018
    assert (await agent.api.patch(NODES, agent.name, {"metadata": {"labels": {label: "b"}}})).code == 200


@pytest.mark.parametrize("label", FORBIDDEN)
async def test_labels_that_would_attract_pods(api: Api, agent: Agent, label: str) -> None:
    first = await agent.register(labels={label: "a"})
    first.refused(403, "Forbidden")
    assert first.message.endswith(f'node "{agent.name}" is not allowed to set the following labels: {label}')
    (await agent.register()).ok  # noqa: B018
    for subresource in ("", "status"):
        second = await agent.api.patch(NODES, agent.name, {"metadata": {"labels": {label: "a"}}}, subresource=subresource)
        second.refused(403, "Forbidden")
        assert second.message.endswith(f"is not allowed to modify labels: {label}")
    (await api.patch(NODES, agent.name, {"metadata": {"labels": {label: "given"}}})).ok  # noqa: B018
    (await agent.api.patch(NODES, agent.name, {"metadata": {"labels": {label: None}}})).refused(403, "Forbidden")


async def test_a_taint_is_its_own_at_birth_and_never_again(api: Api, agent: Agent) -> None:
    taints = [{"key": "herder.dev/vm-host", "effect": "NoSchedule"}]
    body = {"metadata": {"name": agent.name}, "spec": {"taints": taints}}
    made = (await agent.api.create(NODES, body)).ok
    assert taints[0] in made["spec"]["taints"]
    for subresource in ("", "status"):
        refusal = await agent.api.patch(NODES, agent.name, {"spec": {"taints": []}}, subresource=subresource)
        refusal.refused(403, "Forbidden")
        assert refusal.message.endswith(f'node "{agent.name}" is not allowed to modify taints')


async def test_it_gives_itself_no_owner(api: Api, agent: Agent, other: str) -> None:
    (await agent.register()).ok  # noqa: B018
    uid = (await api.get(NODES, other)).ok["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": other, "uid": uid}
    (await agent.api.patch(NODES, agent.name, {"metadata": {"ownerReferences": [owner]}})).refused(403, "Forbidden")


# --- pods ------------------------------------------------------------------------------------------------------------------------


RUNS = {"status": {"phase": "Running"}}


async def test_it_writes_the_status_of_its_own_pods_alone(api: Api, agent: Agent, other: str, namespace: str) -> None:
    mine = await bound_pod(api, namespace, "mine", agent.name)
    await bound_pod(api, namespace, "theirs", other)
    with_uid = {"metadata": {"uid": mine["metadata"]["uid"]}, **RUNS}
    assert (await agent.api.patch(PODS, "mine", with_uid, namespace, "status", kind="strategic")).ok["status"]["phase"] == "Running"
    theirs = (await api.get(PODS, "theirs", namespace)).ok
    for reply in (
        await agent.api.patch(PODS, "theirs", RUNS, namespace, "status", kind="strategic"),
        await agent.api.patch(PODS, "theirs", RUNS, namespace, "status"),
        await agent.api.update(PODS, theirs, namespace, "status"),
    ):
        reply.refused(403, "Forbidden")
        why = f'node "{agent.name}" can only update pod status for pods with spec.nodeName set to itself'
        assert reply.message == f'pods "theirs" is forbidden: {why}'


async def test_the_status_is_no_way_to_anything_else(api: Api, agent: Agent, other: str, namespace: str) -> None:
    await bound_pod(api, namespace, "mine", agent.name)
    labelled = await agent.api.patch(PODS, "mine", {"metadata": {"labels": {"app": "bank"}}}, namespace, "status")
    labelled.refused(403, "Forbidden")
    assert labelled.message.endswith(f'node "{agent.name}" cannot update labels through pod status')
    changed = {"spec": {"nodeName": other, "containers": [{"name": "main", "image": "evil"}]}}
    await agent.api.patch(PODS, "mine", changed, namespace, "status", kind="strategic")
    spec = (await api.get(PODS, "mine", namespace)).ok["spec"]
    assert (spec["nodeName"], spec["containers"][0]["image"]) == (agent.name, "registry.example.com/app:1")


async def test_it_deletes_its_own_pods_alone(api: Api, agent: Agent, other: str, namespace: str) -> None:
    mine = await bound_pod(api, namespace, "mine", agent.name)
    await bound_pod(api, namespace, "theirs", other)
    refusal = await agent.api.delete(PODS, "theirs", namespace, gracePeriodSeconds=0)
    refusal.refused(403, "Forbidden")
    assert refusal.message.endswith(f'node "{agent.name}" can only delete pods with spec.nodeName set to itself')
    (await agent.api.delete_collection(PODS, namespace)).refused(403, "Forbidden")
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": mine["metadata"]["uid"]}}
    assert (await agent.api.delete(PODS, "mine", namespace, options)).code == 200
    assert (await api.get(PODS, "mine", namespace)).code == 404


async def test_it_changes_no_pod(api: Api, agent: Agent, namespace: str) -> None:
    await bound_pod(api, namespace, "mine", agent.name)
    (await agent.api.patch(PODS, "mine", {"metadata": {"labels": {"a": "b"}}}, namespace)).refused(403, "Forbidden")
    (await agent.api.patch(PODS, "mine", {"metadata": {"finalizers": None}}, namespace)).refused(403, "Forbidden")


async def test_not_even_a_role_lets_a_node_change_pods(api: Api, agent: Agent, namespace: str) -> None:
    await bound_pod(api, namespace, "mine", agent.name)
    await grant(api, namespace, user(f"system:node:{agent.name}"), rule("patch", "pods"))
    refusal = await agent.api.patch(PODS, "mine", {"metadata": {"labels": {"a": "b"}}}, namespace)
    refusal.refused(403, "Forbidden")
    assert "can only create and delete mirror pods" in refusal.message


async def test_it_makes_no_pods(agent: Agent, other: str, namespace: str) -> None:
    (await agent.register()).ok  # noqa: B018
    for where in (agent.name, other, ""):
        body = pod("new")
        body["spec"] |= {"nodeName": where} if where else {}
        refusal = await agent.api.create(PODS, body, namespace)
        refusal.refused(403, "Forbidden")
        assert "can only create mirror pods" in refusal.message


async def test_it_binds_no_pods(api: Api, agent: Agent, namespace: str) -> None:
    (await api.create(PODS, pod("waits", schedulerName="none"), namespace)).ok  # noqa: B018
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waits"}, "target": {"kind": "Node", "name": agent.name}}
    (await agent.api.request("POST", PODS.path(namespace, "waits", "binding"), body)).refused(403, "Forbidden")
    (await agent.api.request("POST", f"/api/v1/namespaces/{namespace}/bindings", body)).refused(403, "Forbidden")


async def test_it_evicts_its_own_pods_alone(api: Api, agent: Agent, other: str, namespace: str) -> None:
    await bound_pod(api, namespace, "mine", agent.name)
    await bound_pod(api, namespace, "theirs", other)

    def eviction(name: str) -> Json:
        return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}

    refusal = await agent.api.request("POST", PODS.path(namespace, "theirs", "eviction"), eviction("theirs"))
    refusal.refused(403, "Forbidden")
    assert (await agent.api.request("POST", PODS.path(namespace, "mine", "eviction"), eviction("mine"))).code == 201


# --- tokens and leases -----------------------------------------------------------------------------------------------------------


async def test_tokens_are_for_its_own_pods_alone(api: Api, agent: Agent, other: str, namespace: str) -> None:
    (await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, namespace)).ok  # noqa: B018
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    volumes = [{"name": "token", "projected": {"sources": [source]}}]
    mine = await bound_pod(api, namespace, "mine", agent.name, serviceAccountName="robot", volumes=volumes)
    theirs = await bound_pod(api, namespace, "theirs", other, serviceAccountName="robot", volumes=volumes)

    def bound(to: Json) -> Json:
        meta = to["metadata"]
        return {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}}

    assert (await request_token(agent.api, namespace, "robot", **bound(mine)))["status"]["token"]
    path = SERVICE_ACCOUNTS.path(namespace, "robot", "token")
    for spec in ({}, bound(theirs), {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "mine"}}):
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        (await agent.api.request("POST", path, body)).refused(403, "Forbidden")
    default = SERVICE_ACCOUNTS.path(namespace, "default", "token")
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": bound(mine)}
    (await agent.api.request("POST", default, body)).refused(403, "Forbidden")


async def test_a_lease_is_made_under_its_own_name_alone(agent: Agent, other: str) -> None:
    body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": {"name": other}}
    put = await agent.api.request("PUT", LEASES.path("kube-node-lease", other), body)
    put.refused(403, "Forbidden")


async def test_of_a_claim_it_says_only_what_it_finds_out(api: Api, agent: Agent, namespace: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}
    (await api.create(CLAIMS, {"metadata": {"name": "disk"}, "spec": spec}, namespace)).ok  # noqa: B018
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}]
    await bound_pod(api, namespace, "mine", agent.name, volumes=volumes)
    grown = {"status": {"conditions": [{"type": "FileSystemResizePending", "status": "True"}]}}
    assert (await agent.api.patch(CLAIMS, "disk", grown, namespace, "status", kind="strategic")).code == 200
    for change in ({"metadata": {"labels": {"a": "b"}}}, {"status": {"phase": "Lost"}}):
        (await agent.api.patch(CLAIMS, "disk", change, namespace, "status")).refused(403, "Forbidden")
    (await agent.api.patch(CLAIMS, "disk", {"metadata": {"labels": {"a": "b"}}}, namespace)).refused(403, "Forbidden")
