"""What is registered, and what still works when nobody answers."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from herder.api import registry
from herder.kube.client import Client
from herder.kube.webhook import Registration, Settings
from herder.kube.webhook.registered import MUTATING, NAME, VALIDATING
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Api, Json
from tests.engines.resources import CONFIG_MAPS, Resource
from tests.engines.waiting import eventually
from tests.webhook.replicas import (
    BROKEN,
    FINE,
    MACHINES,
    MovedWorld,
    is_judged,
    is_left_alone,
    registered,
    running,
    some_settings,
    write,
)

pytestmark = pytest.mark.kubernetes
POOLS = resource_of(registry.POOL)
CONFIGURATIONS = [Resource(one.group, one.version, one.plural, one.kind, namespaced=False) for one in (VALIDATING, MUTATING)]
POOL: Json = {"replicas": 1, "template": {"spec": FINE}}


@pytest.fixture
async def abandoned(client: Client, api: Api) -> AsyncIterator[None]:
    """Registered, with some objects, and then the webhook went away."""
    world, settings = MovedWorld(0), some_settings()
    registration = Registration(client, world, settings)
    async with running(client, world, settings):
        await registration.register()
        await eventually(lambda: is_judged(api))
        (await write(api, FINE, "held")).ok  # noqa: B018
        await api.patch(MACHINES, "held", {"metadata": {"finalizers": ["example.com/hold"]}}, "default")
        (await api.create(POOLS, {"metadata": {"name": "pool"}, "spec": POOL}, "default")).ok  # noqa: B018
    yield
    await registration.remove()
    await eventually(lambda: is_left_alone(api))
    for resource, name in ((MACHINES, "held"), (POOLS, "pool")):
        await api.patch(resource, name, {"metadata": {"finalizers": None}}, "default")
        await api.delete(resource, name, "default")


async def test_without_an_answer_nothing_new_is_taken_and_the_error_names_the_webhook(api: Api, abandoned: None) -> None:
    refused = await write(api, FINE)
    assert refused.code == 500
    assert 'failed calling webhook "validate.herder.dev"' in refused.message
    changed = await api.patch(MACHINES, "held", {"spec": {"running": True}}, "default")
    assert changed.code == 500


async def test_without_an_answer_objects_end_and_are_reported_on(api: Api, abandoned: None) -> None:
    (await api.patch(POOLS, "pool", {"spec": {"replicas": 3}}, "default", "scale")).ok  # noqa: B018
    (await api.patch(POOLS, "pool", {"status": {"replicas": 1}}, "default", "status")).ok  # noqa: B018
    (await api.delete(POOLS, "pool", "default")).ok  # noqa: B018
    (await api.delete(MACHINES, "held", "default")).ok  # noqa: B018
    (await api.patch(MACHINES, "held", {"metadata": {"finalizers": None}}, "default")).ok  # noqa: B018
    assert (await api.get(MACHINES, "held", "default")).code == 404


async def test_without_an_answer_what_ends_is_still_not_changed_unseen(api: Api, abandoned: None) -> None:
    (await api.delete(MACHINES, "held", "default")).ok  # noqa: B018
    assert (await api.patch(MACHINES, "held", {"spec": BROKEN}, "default")).code == 500


async def test_without_an_answer_other_kinds_and_our_own_accounts_go_on(api: Api, abandoned: None) -> None:
    (await api.create(CONFIG_MAPS, {"metadata": {"name": "other"}}, "default")).ok  # noqa: B018
    headers = {
        "Impersonate-User": "system:serviceaccount:herder-system:herder",
        "Impersonate-Group": "system:serviceaccounts:herder-system",
    }
    # One header of this name is all that the client sends; the right to write comes from a role.
    await _let_write(api, headers["Impersonate-User"])
    body = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind, "metadata": {"name": "ours"}, "spec": FINE}

    async def written() -> bool:
        made = await api.request("POST", MACHINES.path("default"), body, headers=headers, dryRun="All")
        return made.code == 201

    await eventually(written)


async def _let_write(api: Api, user: str) -> None:
    rbac = ("rbac.authorization.k8s.io", "v1")
    binding: dict[str, Any] = {
        "metadata": {"name": "ours"},
        "roleRef": {"apiGroup": rbac[0], "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": rbac[0], "kind": "User", "name": user}],
    }
    bindings = Resource(*rbac, "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
    assert (await api.create(bindings, binding)).code in (201, 409)


async def test_what_somebody_changed_is_put_right_and_written_only_then(client: Client, api: Api) -> None:
    world, settings = MovedWorld(0), some_settings()
    async with running(client, world, settings), registered(client, world, settings, api) as registration:
        first = [(await api.get(one, NAME.name)).ok for one in CONFIGURATIONS]
        await registration.register()
        assert [(await api.get(one, NAME.name)).ok for one in CONFIGURATIONS] == first
        assert {entry["manager"] for one in first for entry in one["metadata"]["managedFields"]} == {"herder"}
        spoilt = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]
        (await api.patch(CONFIGURATIONS[0], NAME.name, spoilt, kind="json")).ok  # noqa: B018
        (await api.delete(CONFIGURATIONS[1], NAME.name)).ok  # noqa: B018
        await registration.register()
        again = [(await api.get(one, NAME.name)).ok for one in CONFIGURATIONS]
        assert [one["webhooks"] for one in again] == [one["webhooks"] for one in first]
        await eventually(lambda: is_judged(api))
    for one in CONFIGURATIONS:
        assert (await api.get(one, NAME.name)).code == 404


async def test_what_was_there_before_the_rules_can_be_changed_reported_on_and_deleted_but_not_made_worse(
    client: Client, api: Api
) -> None:
    (await write(api, BROKEN, "early")).ok  # noqa: B018
    world, settings = MovedWorld(0), some_settings()
    async with running(client, world, settings), registered(client, world, settings, api):
        (await api.patch(MACHINES, "early", {"metadata": {"labels": {"x": "y"}}}, "default")).ok  # noqa: B018
        (await api.patch(MACHINES, "early", {"status": {"ready": False}}, "default", "status")).ok  # noqa: B018
        (await api.patch(MACHINES, "early", {"spec": {"running": True}}, "default")).ok  # noqa: B018
        worse = {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "4Gi"}}}}}}
        (await api.patch(MACHINES, "early", worse, "default")).refused(422, "Invalid")
        (await api.delete(MACHINES, "early", "default")).ok  # noqa: B018


async def test_inside_a_cluster_the_service_is_registered(client: Client, api: Api) -> None:
    registration = Registration(client, MovedWorld(0), Settings())
    await registration.register()
    for resource, path in zip(CONFIGURATIONS, ("/validate", "/mutate"), strict=True):
        webhook = (await api.get(resource, NAME.name)).ok["webhooks"][0]
        address = {"name": "herder-webhook", "namespace": "herder-system", "path": path, "port": 443}
        assert webhook["clientConfig"]["service"] == address
        assert (webhook["failurePolicy"], webhook["sideEffects"], webhook["matchPolicy"]) == ("Fail", "None", "Equivalent")
        assert {operation for rule in webhook["rules"] for operation in rule["operations"]} == {"CREATE", "UPDATE"}
    await registration.remove()


async def test_every_kind_of_ours_is_judged(client: Client, api: Api) -> None:
    registration = Registration(client, MovedWorld(0), some_settings())
    await registration.register()
    webhook, *_ = (await api.get(CONFIGURATIONS[0], NAME.name)).ok["webhooks"]
    assert {(rule["apiGroups"][0], rule["resources"][0]) for rule in webhook["rules"]} == {
        (info.group, info.plural) for info in registry.KINDS
    }
    await registration.remove()
