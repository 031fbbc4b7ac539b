"""A node's agent sees its own node and pods, and what those mount. Trying to see more."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.behaviour.nodes import Agent, agent_of, bound_pod, until_may
from tests.engines.api import Api, Json
from tests.engines.credentials import grant, rule, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.resources import (
    CLAIMS,
    CONFIG_MAPS,
    CRDS,
    LEASES,
    NAMESPACES,
    NEW_EVENTS,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    VOLUMES,
    Resource,
)

LEASED = "kube-node-lease"


@pytest.fixture
async def agent(engine: Engine, unique: Callable[..., str]) -> AsyncIterator[Agent]:
    async with agent_of(engine, unique("mine")) as connected:
        yield connected


@pytest.fixture
def other(unique: Callable[..., str]) -> str:
    return unique("other")


def mounts(**source: Json) -> list[Json]:
    return [{"name": "v", **source}]


# --- its pods --------------------------------------------------------------------------------------------------------------------


async def test_it_sees_the_pods_of_its_node_and_no_others(api: Api, agent: Agent, other: str, namespace: str) -> None:
    await bound_pod(api, namespace, "mine", agent.name)
    await bound_pod(api, namespace, "theirs", other)
    mine = f"spec.nodeName={agent.name}"
    assert (await agent.api.list(PODS, fieldSelector=mine)).names == ["mine"]
    assert (await agent.api.get(PODS, "mine", namespace)).code == 200
    for reply in (
        await agent.api.get(PODS, "theirs", namespace),
        await agent.api.list(PODS),
        await agent.api.list(PODS, namespace),
        await agent.api.list(PODS, fieldSelector=f"spec.nodeName={other}"),
        await agent.api.list(PODS, fieldSelector=f"spec.nodeName!={agent.name}"),
        await agent.api.list(PODS, namespace, fieldSelector="metadata.name=theirs"),
        await agent.api.list(PODS, labelSelector="a=b"),
        await agent.api.get(PODS, "theirs", namespace, "status"),
        await agent.api.get(PODS, "mine", namespace, "status"),
    ):
        reply.refused(403, "Forbidden")


async def test_it_watches_the_pods_of_its_node(api: Api, agent: Agent, namespace: str) -> None:
    async with agent.api.watch(PODS, fieldSelector=f"spec.nodeName={agent.name}") as watch:
        await bound_pod(api, namespace, "mine", agent.name)
        assert (await watch.next()).brief == ("ADDED", "mine")


async def test_the_refusal_says_how_pods_are_to_be_asked_for(agent: Agent) -> None:
    reply = await agent.api.list(PODS)
    reply.refused(403, "Forbidden")
    assert reply.message == (
        f'pods is forbidden: User "system:node:{agent.name}" cannot list resource "pods" in API group "" at the cluster scope: '
        "can only list/watch pods with spec.nodeName field selector"
    )


async def test_a_pod_that_waits_is_not_yet_any_nodes(api: Api, agent: Agent, namespace: str) -> None:
    body = {"metadata": {"name": "waits"}, "spec": {"schedulerName": "none", "containers": [{"name": "a", "image": "a"}]}}
    (await api.create(PODS, body, namespace)).ok  # noqa: B018
    (await agent.api.get(PODS, "waits", namespace)).refused(403, "Forbidden")


# --- what they mount -------------------------------------------------------------------------------------------------------------


MOUNTED: list[tuple[Resource, Json, Any]] = [
    (SECRETS, {"data": {}}, mounts(secret={"secretName": "thing"})),
    (CONFIG_MAPS, {"data": {}}, mounts(configMap={"name": "thing"})),
    (SECRETS, {"data": {}}, mounts(projected={"sources": [{"secret": {"name": "thing"}}]})),
    (CONFIG_MAPS, {"data": {}}, mounts(projected={"sources": [{"configMap": {"name": "thing"}}]})),
    (
        CLAIMS,
        {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1"}}}},
        mounts(persistentVolumeClaim={"claimName": "thing"}),
    ),
]
KINDS = ["secret", "config map", "projected secret", "projected config map", "claim"]


@pytest.mark.parametrize(("resource", "body", "volumes"), MOUNTED, ids=KINDS)
async def test_it_reads_what_its_pods_mount(
    api: Api, agent: Agent, other: str, namespace: str, resource: Resource, body: Json, volumes: list[Json]
) -> None:
    for name in ("thing", "treasure"):
        (await api.create(resource, {"metadata": {"name": name}, **body}, namespace)).ok  # noqa: B018
    await bound_pod(api, namespace, "theirs", other, volumes=volumes)
    refusal = await agent.api.get(resource, "thing", namespace)
    refusal.refused(403, "Forbidden")
    assert refusal.message.endswith(f": no relationship found between node '{agent.name}' and this object")
    await bound_pod(api, namespace, "mine", agent.name, volumes=volumes)
    assert (await agent.api.get(resource, "thing", namespace)).code == 200
    (await agent.api.get(resource, "treasure", namespace)).refused(403, "Forbidden")
    (await agent.api.list(resource, namespace)).refused(403, "Forbidden")
    (await agent.api.list(resource)).refused(403, "Forbidden")
    (await agent.api.patch(resource, "thing", {"metadata": {"labels": {"a": "b"}}}, namespace)).refused(403, "Forbidden")
    (await agent.api.delete(resource, "thing", namespace)).refused(403, "Forbidden")


async def test_a_mounted_secret_may_be_watched_alone(api: Api, agent: Agent, namespace: str) -> None:
    for name in ("thing", "treasure"):
        (await api.create(SECRETS, {"metadata": {"name": name}}, namespace)).ok  # noqa: B018
    await bound_pod(api, namespace, "mine", agent.name, volumes=mounts(secret={"secretName": "thing"}))
    assert (await agent.api.list(SECRETS, namespace, fieldSelector="metadata.name=thing")).names == ["thing"]
    (await agent.api.list(SECRETS, namespace, fieldSelector="metadata.name=treasure")).refused(403, "Forbidden")
    (await agent.api.list(SECRETS, fieldSelector="metadata.name=thing")).refused(403, "Forbidden")


async def test_what_containers_take_from_secrets_counts_too(api: Api, agent: Agent, namespace: str) -> None:
    taken = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "one", "key": "a"}}}]
    whole = [{"secretRef": {"name": "all"}}, {"configMapRef": {"name": "all"}}]
    container = {"name": "a", "image": "a", "env": taken, "envFrom": whole}
    pull = [{"name": "pull"}]
    first = {"name": "i", "image": "i", "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "one", "key": "a"}}}]}
    for resource, name in ((SECRETS, "one"), (SECRETS, "all"), (SECRETS, "pull"), (CONFIG_MAPS, "all"), (CONFIG_MAPS, "one")):
        (await api.create(resource, {"metadata": {"name": name}}, namespace)).ok  # noqa: B018
    await bound_pod(api, namespace, "mine", agent.name, containers=[container], initContainers=[first], imagePullSecrets=pull)
    for resource, name in ((SECRETS, "one"), (SECRETS, "all"), (SECRETS, "pull"), (CONFIG_MAPS, "all"), (CONFIG_MAPS, "one")):
        assert (await agent.api.get(resource, name, namespace)).code == 200, (resource.plural, name)


async def test_the_same_name_in_another_namespace_is_another(api: Api, agent: Agent, namespace: str, unique: Any) -> None:
    elsewhere = unique()
    (await api.create(NAMESPACES, {"metadata": {"name": elsewhere}})).ok  # noqa: B018
    for place in (namespace, elsewhere):
        (await api.create(SECRETS, {"metadata": {"name": "thing"}}, place)).ok  # noqa: B018
    await bound_pod(api, namespace, "mine", agent.name, volumes=mounts(secret={"secretName": "thing"}))
    (await agent.api.get(SECRETS, "thing", elsewhere)).refused(403, "Forbidden")


async def test_with_the_pod_goes_the_right_to_its_secret(api: Api, agent: Agent, namespace: str) -> None:
    (await api.create(SECRETS, {"metadata": {"name": "thing"}}, namespace)).ok  # noqa: B018
    await bound_pod(api, namespace, "mine", agent.name, volumes=mounts(secret={"secretName": "thing"}))
    assert (await agent.api.get(SECRETS, "thing", namespace)).code == 200
    (await api.delete(PODS, "mine", namespace, gracePeriodSeconds=0)).ok  # noqa: B018
    await until_may(api, agent.name, "get", "secrets", namespace, "thing", allowed=False)
    (await agent.api.get(SECRETS, "thing", namespace)).refused(403, "Forbidden")


async def test_it_reads_the_volume_behind_a_claim(api: Api, agent: Agent, other: str, namespace: str, unique: Any) -> None:
    volume = unique("pv")
    spec = {
        "capacity": {"storage": "1"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "local": {"path": "/x"},
        "claimRef": {"namespace": namespace, "name": "disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}},
    }
    (await api.create(VOLUMES, {"metadata": {"name": volume}, "spec": spec})).ok  # noqa: B018
    await bound_pod(api, namespace, "theirs", other, volumes=mounts(persistentVolumeClaim={"claimName": "disk"}))
    (await agent.api.get(VOLUMES, volume)).refused(403, "Forbidden")
    await bound_pod(api, namespace, "mine", agent.name, volumes=mounts(persistentVolumeClaim={"claimName": "disk"}))
    await until_may(api, agent.name, "get", "persistentvolumes", "", volume)
    assert (await agent.api.get(VOLUMES, volume)).code == 200
    (await agent.api.list(VOLUMES)).refused(403, "Forbidden")
    (await agent.api.delete(VOLUMES, volume)).refused(403, "Forbidden")


# --- its node, its lease, and everything else ------------------------------------------------------------------------------------


async def test_it_reads_its_own_node_alone(agent: Agent, other: str) -> None:
    assert (await agent.api.get(NODES, agent.name)).code == 404
    (await agent.register()).ok  # noqa: B018
    assert (await agent.api.get(NODES, agent.name)).code == 200
    assert (await agent.api.list(NODES, fieldSelector=f"metadata.name={agent.name}")).names == [agent.name]
    refusal = await agent.api.get(NODES, other)
    refusal.refused(403, "Forbidden")
    assert refusal.message.endswith(f": node '{agent.name}' cannot read '{other}', only its own Node object")
    (await agent.api.list(NODES)).refused(403, "Forbidden")
    (await agent.api.delete(NODES, agent.name)).refused(403, "Forbidden")


async def test_it_keeps_its_own_lease_alone(api: Api, agent: Agent, other: str, namespace: str) -> None:
    spec = {"holderIdentity": agent.name, "leaseDurationSeconds": 40}
    (await agent.api.create(LEASES, {"metadata": {"name": agent.name}, "spec": spec}, LEASED)).ok  # noqa: B018
    assert (await agent.api.patch(LEASES, agent.name, {"spec": {"leaseDurationSeconds": 41}}, LEASED)).code == 200
    (await api.create(LEASES, {"metadata": {"name": other}}, LEASED)).ok  # noqa: B018
    for reply in (
        await agent.api.get(LEASES, other, LEASED),
        await agent.api.patch(LEASES, other, {"spec": {"holderIdentity": "thief"}}, LEASED),
        await agent.api.delete(LEASES, other, LEASED),
        await agent.api.create(LEASES, {"metadata": {"name": f"{other}-2"}}, LEASED),
        await agent.api.create(LEASES, {"metadata": {"name": agent.name}}, namespace),
        await agent.api.list(LEASES, LEASED),
    ):
        reply.refused(403, "Forbidden")


async def test_it_tells_events_and_asks_reviews(agent: Agent, namespace: str) -> None:
    event = {
        "metadata": {"name": "told"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "herder.dev/agent",
        "reportingInstance": agent.name,
        "action": "Start",
        "reason": "Started",
        "type": "Normal",
        "regarding": {"kind": "Pod", "name": "x", "namespace": namespace},
    }
    assert (await agent.api.create(NEW_EVENTS, event, namespace)).code == 201
    asked = {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "nodes", "subresource": "log"}}
    reviews = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
    assert (await agent.api.create(reviews, {"spec": asked})).code == 201
    tokens = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
    assert (await agent.api.create(tokens, {"spec": {"token": "no"}})).ok["status"].get("authenticated", False) is False


@pytest.mark.parametrize("resource", [NAMESPACES, CRDS, SERVICE_ACCOUNTS], ids=lambda one: one.plural)
async def test_it_sees_nothing_else(agent: Agent, resource: Resource) -> None:
    (await agent.api.list(resource)).refused(403, "Forbidden")


async def test_it_cannot_act_as_somebody_else(agent: Agent) -> None:
    for headers in ({"Impersonate-User": "admin"}, {"Impersonate-User": "system:node:other", "Impersonate-Group": "system:nodes"}):
        (await agent.api.request("GET", NODES.path(), headers=headers)).refused(403, "Forbidden")


# --- who is a node ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "groups"), [("system:node:{}", ()), ("{}", ("system:nodes",)), ("system:node:", ("system:nodes",))]
)
async def test_name_and_group_must_both_say_node(engine: Engine, unique: Any, name: str, groups: tuple[str, ...]) -> None:
    node = unique("mine")
    async with with_certificate(engine, name.format(node), *groups) as half:
        (await half.get(NODES, node)).refused(403, "Forbidden")
        (await half.create(NODES, {"metadata": {"name": node}})).refused(403, "Forbidden")
        (await half.list(PODS, fieldSelector=f"spec.nodeName={node}")).refused(403, "Forbidden")


async def test_roles_give_a_node_more(api: Api, agent: Agent, namespace: str) -> None:
    (await api.create(SECRETS, {"metadata": {"name": "thing"}}, namespace)).ok  # noqa: B018
    await grant(api, namespace, user(f"system:node:{agent.name}"), rule("get", "secrets"))
    assert (await agent.api.get(SECRETS, "thing", namespace)).code == 200
