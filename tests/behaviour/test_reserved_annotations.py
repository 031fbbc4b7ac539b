"""Annotations of pods that nodes obey: nobody writes them but our controllers. Tried by people who rule their own namespace."""

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from herder.api.reserved_annotations import CONTROLLERS, RESERVED
from tests.behaviour.manifests import pod
from tests.engines.api import Api, Json, Reply
from tests.engines.credentials import bind, grant, rule, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.resources import PODS
from tests.engines.waiting import eventually

IMPORT, GUEST = "herder.dev/import", "herder.dev/guest"
ORDER = '{"action":"delete","volume":"pvc-00000000-0000-4000-8000-000000000001"}'
SENTENCE = (
    f"metadata.annotations[{IMPORT}]: a node obeys it, so only system:serviceaccount:herder-system:herder-controllers "
    "may write it, or who may impersonate that account"
)


def ordered(name: str, annotation: str = IMPORT, **metadata: Any) -> Json:
    return pod(name, {"annotations": {annotation: ORDER, "note": "a"}, **metadata})


def owned_by(kind: str, api_version: str) -> Json:
    owner = {"apiVersion": api_version, "kind": kind, "name": "owner", "uid": str(uuid.uuid4()), "controller": True}
    return {"ownerReferences": [owner]}


@pytest.fixture(autouse=True)
async def restricted(api: Api, namespace: str) -> None:
    """A real API server notices a moment after our webhook was registered."""
    probe = ordered("probe", **owned_by("ReplicaSet", "apps/v1"))

    async def refused() -> bool:
        return (await api.create(PODS, probe, namespace, dryRun="All")).code == 403

    assert await eventually(refused)


@pytest.fixture(params=["admin", "edit"])
async def tenant(request: pytest.FixtureRequest, engine: Engine, api: Api, namespace: str) -> AsyncIterator[Api]:
    """With one of the built-in roles, in this namespace and nowhere else."""
    who = f"tenant-{uuid.uuid4().hex[:8]}"
    await bind(api, namespace, request.param, user(who), rule("create", "pods"))
    async with with_certificate(engine, who) as connected:
        yield connected


@pytest.fixture
async def controllers(engine: Engine, api: Api, namespace: str) -> AsyncIterator[Api]:
    """As our controllers are known, with no right but that to pods."""
    await grant(api, namespace, user(CONTROLLERS), rule("create get patch", "pods"))
    async with with_certificate(engine, CONTROLLERS) as connected:
        yield connected


@pytest.fixture
async def other(engine: Engine, api: Api, namespace: str) -> AsyncIterator[Api]:
    """Somebody who may write the status of pods and bind them, as schedulers and some operators may."""
    who = f"operator-{uuid.uuid4().hex[:8]}"
    await grant(api, namespace, user(who), rule("patch update", "pods/status"), rule("create", "pods/binding bindings"))
    async with with_certificate(engine, who) as connected:
        yield connected


def forbidden(reply: Reply, annotation: str = IMPORT) -> None:
    reply.refused(403, "Forbidden")
    assert reply.message.endswith(SENTENCE.replace(IMPORT, annotation)), reply.message


@pytest.mark.parametrize("annotation", RESERVED)
async def test_a_tenant_cannot_create_a_pod_that_orders_something(tenant: Api, namespace: str, annotation: str) -> None:
    for value in (ORDER, "", "true"):
        forbidden(await tenant.create(PODS, pod("p", {"annotations": {annotation: value}}), namespace), annotation)
    forbidden(await tenant.create(PODS, ordered("p", annotation), namespace, dryRun="All"), annotation)
    assert (await tenant.list(PODS, namespace)).names == []


async def test_naming_one_of_our_objects_as_the_owner_changes_nothing(tenant: Api, namespace: str) -> None:
    for owner in (owned_by("DataVolume", "cdi.kubevirt.io/v1beta1"), owned_by("PersistentVolume", "v1")):
        forbidden(await tenant.create(PODS, ordered("p", **owner), namespace))


async def test_a_pod_without_such_an_annotation_is_nobodys_business(tenant: Api, namespace: str) -> None:
    (await tenant.create(PODS, pod("p", {"annotations": {"herder.dev/imported": ORDER, "note": "a"}}), namespace)).ok  # noqa: B018
    patch = {"metadata": {"annotations": {"note": "b"}, "labels": {"a": "b"}}}
    (await tenant.patch(PODS, "p", patch, namespace)).ok  # noqa: B018


async def test_an_order_cannot_be_added_to_a_pod(tenant: Api, namespace: str) -> None:
    stored = (await tenant.create(PODS, pod("p"), namespace)).ok
    added: Json = {"metadata": {"annotations": {IMPORT: ORDER}}}
    for kind in ("merge", "strategic"):
        forbidden(await tenant.patch(PODS, "p", added, namespace, kind=kind))
    by_path = [{"op": "add", "path": "/metadata/annotations", "value": {IMPORT: ORDER}}]
    forbidden(await tenant.patch(PODS, "p", by_path, namespace, kind="json"))
    applied: Json = {"apiVersion": "v1", "kind": "Pod", **added}
    forbidden(await tenant.patch(PODS, "p", applied, namespace, kind="apply", fieldManager="me", force="true"))
    # Its scheduler may have written to it meanwhile.
    whole = {**stored["metadata"], **added["metadata"], "resourceVersion": None}
    forbidden(await tenant.update(PODS, {**stored, "metadata": whole}, namespace))
    created = {**applied, "metadata": {"name": "new", **applied["metadata"]}, "spec": pod("new")["spec"]}
    forbidden(await tenant.patch(PODS, "new", created, namespace, kind="apply", fieldManager="me", force="true"))


async def test_an_order_cannot_be_changed_or_taken_away_and_anything_else_can(api: Api, tenant: Api, namespace: str) -> None:
    (await api.create(PODS, ordered("p"), namespace)).ok  # noqa: B018
    forbidden(await tenant.patch(PODS, "p", {"metadata": {"annotations": {IMPORT: "{}"}}}, namespace))
    forbidden(await tenant.patch(PODS, "p", {"metadata": {"annotations": {IMPORT: None}}}, namespace))
    forbidden(await tenant.patch(PODS, "p", {"metadata": {"annotations": None}}, namespace))
    disowned = {"metadata": {"annotations": {IMPORT: None}, **owned_by("ReplicaSet", "apps/v1")}}
    forbidden(await tenant.patch(PODS, "p", disowned, namespace))
    (await tenant.patch(PODS, "p", {"metadata": {"annotations": {"note": None}, "labels": {"a": "b"}}}, namespace)).ok  # noqa: B018
    assert (await tenant.delete(PODS, "p", namespace)).code == 200


async def test_no_other_way_into_the_annotations_of_a_pod_is_open(api: Api, other: Api, namespace: str) -> None:
    added: Json = {"metadata": {"annotations": {IMPORT: ORDER}}}
    (await api.create(PODS, pod("p"), namespace)).ok  # noqa: B018
    forbidden(await other.patch(PODS, "p", added, namespace, "status"))
    (await other.patch(PODS, "p", {"metadata": {"annotations": {"note": "a"}}}, namespace, "status")).ok  # noqa: B018
    binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"}}
    bound = {**binding, "metadata": {"name": "p", **added["metadata"]}}
    for path in (PODS.path(namespace, "p", "binding"), f"/api/v1/namespaces/{namespace}/bindings"):
        reply = await other.request("POST", path, bound)
        reply.refused(403, "Forbidden")
        assert reply.message.endswith(SENTENCE)
    reply = await other.request("POST", PODS.path(namespace, "p", "binding"), {**binding, "metadata": {"name": "p"}})
    assert reply.code == 201


async def test_debugging_containers_bring_no_order(engine: Engine, api: Api, tenant: Api, namespace: str) -> None:
    """The embedded engine has no such containers."""
    stored = (await tenant.create(PODS, pod("p"), namespace)).ok
    stored["metadata"]["annotations"] = {IMPORT: ORDER}
    stored["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "i"}]
    await tenant.update(PODS, stored, namespace, "ephemeralcontainers")
    assert IMPORT not in (await api.get(PODS, "p", namespace)).ok["metadata"].get("annotations", {})


async def test_our_controllers_and_who_may_act_as_them_give_orders(api: Api, controllers: Api, namespace: str) -> None:
    for client, name in ((controllers, "by-account"), (api, "by-administrator")):
        (await client.create(PODS, ordered(name), namespace)).ok  # noqa: B018
        (await client.patch(PODS, name, {"metadata": {"annotations": {IMPORT: "{}"}}}, namespace)).ok  # noqa: B018


async def test_who_may_impersonate_the_controllers_may_give_orders_and_nobody_by_another_account(
    engine: Engine, api: Api, namespace: str
) -> None:
    """As cluster administrators may, who are in no special group. `edit` may impersonate the accounts of its own namespace."""
    for where, account, allowed in (
        ("herder-system", "herder-controllers", True),
        ("herder-system", "herder-simulated-nodes", False),
        (namespace, "herder-controllers", False),
    ):
        who = f"deputy-{uuid.uuid4().hex[:8]}"
        await grant(api, namespace, user(who), rule("create", "pods"))
        await grant(api, where, user(who), rule("impersonate", "serviceaccounts", "", account))
        async with with_certificate(engine, who) as deputy:
            reply = await deputy.create(PODS, ordered("p"), namespace, dryRun="All")
            assert reply.code == (201 if allowed else 403), (where, account, reply.body)


async def test_an_order_that_stood_in_a_template_is_no_order_whoever_makes_the_pod(
    api: Api, controllers: Api, namespace: str
) -> None:
    owners = "a DataVolume or a PersistentVolume or a VirtualMachineInstance"
    sentence = f"metadata.annotations[{IMPORT}]: is only for pods that belong to {owners}, and this one "
    for client in (api, controllers):
        reply = await client.create(PODS, ordered("p", **owned_by("ReplicaSet", "apps/v1")), namespace)
        reply.refused(403, "Forbidden")
        assert reply.message.endswith(f"{sentence}belongs to a ReplicaSet"), reply.message
    (await controllers.create(PODS, ordered("p", GUEST, **owned_by("VirtualMachineInstance", "kubevirt.io/v1")), namespace)).ok  # noqa: B018
