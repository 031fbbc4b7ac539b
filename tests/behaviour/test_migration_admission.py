"""Migrations and policies that others stand in the way of: refused by the embedded engine and the webhook in the same words."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from herder.api import registry
from tests.behaviour.our_kinds import install_crds, resource_of
from tests.engines.api import Api, Reply

Json = dict[str, Any]
Unique = Callable[..., str]
INSTANCES = resource_of(registry.INSTANCE)
MIGRATIONS = resource_of(registry.MIGRATION)
POLICIES = resource_of(registry.POLICY)
DENIED = re.compile(r'^admission webhook "validate\.herder\.dev" denied the request: ')


@pytest.fixture(scope="module", autouse=True)
async def crds(api: Api) -> None:
    await install_crds(api)


def _migration(name: str, instance: str = "web") -> Json:
    return {"metadata": {"name": name}, "spec": {"vmiName": instance}}


def _policy(name: str, **selectors: Json) -> Json:
    return {"metadata": {"name": name}, "spec": {"selectors": selectors}}


async def _instance(api: Api, namespace: str, **status: Any) -> None:
    (await api.create(INSTANCES, {"metadata": {"name": "web"}, "spec": {"domain": {}}}, namespace)).ok  # noqa: B018
    if status:
        (await api.patch(INSTANCES, "web", {"status": status}, namespace, "status")).ok  # noqa: B018


def _refused(reply: Reply, sentence: str) -> None:
    reply.refused(422, "Invalid")
    assert DENIED.sub("", reply.message).partition(" is invalid: ")[2] == sentence


async def test_an_instance_that_is_not_there_cannot_be_moved(api: Api, namespace: str) -> None:
    why = "there is no VirtualMachineInstance of this name in the namespace; only what runs can be moved"
    said = f'spec.vmiName: Not found: "web": {why}'
    _refused(await api.create(MIGRATIONS, _migration("a"), namespace), said)
    named = {"apiVersion": MIGRATIONS.api_version, "kind": MIGRATIONS.kind, **_migration("a")}
    applied = await api.patch(MIGRATIONS, "a", named, namespace, kind="apply", fieldManager="kubectl")
    _refused(applied, said)
    assert (await api.get(MIGRATIONS, "a", namespace)).code == 404


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_an_instance_that_has_ended_cannot_be_moved(api: Api, namespace: str, phase: str) -> None:
    await _instance(api, namespace, phase=phase)
    said = f'spec.vmiName: Invalid value: "web": the instance has ended (phase {phase}): only what runs can be moved'
    _refused(await api.create(MIGRATIONS, _migration("a"), namespace), said)


async def test_an_instance_that_cannot_be_migrated_says_why(api: Api, namespace: str) -> None:
    why = "claim disk is ReadWriteOnce: both nodes must have it for a moment, which needs ReadWriteMany"
    condition = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": why}
    await _instance(api, namespace, phase="Running", conditions=[condition])
    said = f'spec.vmiName: Invalid value: "web": the instance cannot be migrated: DisksNotLiveMigratable: {why}'
    _refused(await api.create(MIGRATIONS, _migration("a"), namespace), said)


async def test_an_instance_is_moved_once_at_a_time(api: Api, namespace: str) -> None:
    await _instance(api, namespace, phase="Running", conditions=[{"type": "LiveMigratable", "status": "True"}])
    (await api.create(MIGRATIONS, _migration("a"), namespace)).ok  # noqa: B018
    second = await api.create(MIGRATIONS, _migration("b"), namespace)
    said = "spec.vmiName: Forbidden: migration a of web is not finished (phase Pending): wait for it, or delete it to cancel it"
    _refused(second, said)
    (await api.patch(MIGRATIONS, "a", {"status": {"phase": "Running"}}, namespace, "status")).ok  # noqa: B018
    _refused(await api.create(MIGRATIONS, _migration("b"), namespace, dryRun="All"), said.replace("Pending", "Running"))
    (await api.patch(MIGRATIONS, "a", {"status": {"phase": "Failed"}}, namespace, "status")).ok  # noqa: B018
    (await api.create(MIGRATIONS, _migration("b"), namespace)).ok  # noqa: B018


async def test_a_migration_that_is_gone_is_in_nobodys_way(api: Api, namespace: str) -> None:
    await _instance(api, namespace)
    for name in ("a", "b"):
        (await api.create(MIGRATIONS, _migration(name), namespace)).ok  # noqa: B018
        (await api.delete(MIGRATIONS, name, namespace)).ok  # noqa: B018
    held = {"metadata": {"name": "c", "finalizers": ["example.com/held"]}, "spec": {"vmiName": "web"}}
    (await api.create(MIGRATIONS, held, namespace)).ok  # noqa: B018
    (await api.delete(MIGRATIONS, "c", namespace)).ok  # noqa: B018
    said = "migration c of web is not finished (phase Pending): it is being cancelled: wait until it is gone"
    _refused(await api.create(MIGRATIONS, _migration("d"), namespace), f"spec.vmiName: Forbidden: {said}")
    # It can end although its instance is gone.
    (await api.delete(INSTANCES, "web", namespace)).ok  # noqa: B018
    (await api.patch(MIGRATIONS, "c", {"metadata": {"finalizers": None}}, namespace)).ok  # noqa: B018


async def test_a_name_in_another_namespace_is_another_instance(api: Api, namespace: str) -> None:
    await _instance(api, namespace)
    elsewhere = await api.create(MIGRATIONS, _migration("a"), "default")
    assert elsewhere.code == 422


async def test_two_policies_with_the_same_selectors_are_refused(api: Api, unique: Unique) -> None:
    first, second, label = unique("p"), unique("p"), unique("label")
    selectors: Json = {"namespaceSelector": {label: True, "x": "1"}, "virtualMachineInstanceSelector": {"y": "2"}}
    (await api.create(POLICIES, _policy(first, **selectors))).ok  # noqa: B018
    same: Json = {"namespaceSelector": {"x": 1, label: "true"}, "virtualMachineInstanceSelector": {"y": 2}}
    reply = await api.create(POLICIES, _policy(second, **same))
    reply.refused(422, "Invalid")
    said = f"MigrationPolicy {first} has the same selectors, and only one of the two could apply: add a label, or change {first}"
    assert "spec.selectors: Duplicate value: " in reply.message and said in reply.message
    # The same pairs on the other side are another policy.
    swapped = {"namespaceSelector": {"y": "2"}, "virtualMachineInstanceSelector": selectors["namespaceSelector"]}
    (await api.create(POLICIES, _policy(unique("p"), **swapped))).ok  # noqa: B018
    (await api.create(POLICIES, _policy(second, **{**same, "virtualMachineInstanceSelector": {"y": 3}}))).ok  # noqa: B018
    change = {"spec": {"selectors": same}}
    assert said in (await api.patch(POLICIES, second, change)).message
    applied = {"apiVersion": POLICIES.api_version, "kind": POLICIES.kind, **_policy(second, **same)}
    assert said in (await api.patch(POLICIES, second, applied, kind="apply", fieldManager="a", force="true")).message
    assert (await api.patch(POLICIES, first, {"spec": {"allowPostCopy": True}})).code == 200
    (await api.delete(POLICIES, first)).ok  # noqa: B018
    assert (await api.patch(POLICIES, second, change)).code == 200


@pytest.mark.parametrize(
    "selectors", [{}, {"namespaceSelector": {}}, {"namespaceSelector": {}, "virtualMachineInstanceSelector": {}}]
)
async def test_a_policy_without_selectors_is_refused_with_advice(api: Api, unique: Unique, selectors: Json) -> None:
    reply = await api.create(POLICIES, _policy(unique("p"), **selectors))
    reply.refused(422, "Invalid")
    assert "write settings for the whole cluster in spec.configuration.migrations of the KubeVirt object" in reply.message
