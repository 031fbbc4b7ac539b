"""While nobody answers, no order to a node gets through from anybody but our controllers, and no other pod waits for us."""

from collections.abc import AsyncIterator

import pytest

from herder.api.reserved_annotations import CONTROLLERS, RESERVED
from herder.kube.client import Client
from herder.kube.webhook import Registration
from tests.behaviour.manifests import pod
from tests.engines.api import Api
from tests.engines.credentials import grant, rule, user, with_certificate
from tests.engines.engine import Engine
from tests.engines.resources import PODS, Resource
from tests.engines.waiting import eventually
from tests.webhook.replicas import MovedWorld, some_settings

pytestmark = pytest.mark.kubernetes
CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)


@pytest.fixture
async def away(client: Client) -> AsyncIterator[None]:
    """Registered, and nobody listens there."""
    registration = Registration(client, MovedWorld(0), some_settings())
    await registration.register()
    yield
    await registration.remove()


@pytest.mark.usefixtures("away")
async def test_only_what_changes_an_order_by_somebody_else_waits_for_the_webhook(server: Engine, api: Api) -> None:
    rights = rule("create patch delete", "pods"), rule("patch", "pods/status")
    for who in ("somebody", CONTROLLERS):
        await grant(api, "default", user(who), *rights)
    async with with_certificate(server, "somebody") as somebody, with_certificate(server, CONTROLLERS) as controllers:

        async def closed() -> bool:
            reply = await somebody.create(PODS, pod("order", {"annotations": {"herder.dev/import": "{}"}}), "default", dryRun="All")
            return reply.code == 500 and "restrict.herder.dev" in reply.message

        assert await eventually(closed)
        (await somebody.create(PODS, pod("plain", {"annotations": {"a": "b"}}), "default")).ok  # noqa: B018
        for client, name in ((controllers, "ours"), (api, "administrators")):
            orders = dict.fromkeys(RESERVED, "{}")
            (await client.create(PODS, pod(name, {"annotations": orders}), "default")).ok  # noqa: B018
            (await client.patch(PODS, name, {"metadata": {"annotations": {"herder.dev/import": "other"}}}, "default")).ok  # noqa: B018
        for name in ("plain", "ours"):
            (await somebody.patch(PODS, name, {"metadata": {"labels": {"a": "b"}}}, "default")).ok  # noqa: B018
            (await somebody.patch(PODS, name, {"status": {"phase": "Running"}}, "default", "status")).ok  # noqa: B018
            (await somebody.delete(PODS, name, "default")).ok  # noqa: B018


async def test_the_webhook_for_pods_is_asked_by_a_condition_alone_and_fails_closed(client: Client, api: Api) -> None:
    registration = Registration(client, MovedWorld(0), some_settings())
    await registration.register()
    hooks = {one["name"]: one for one in (await api.get(CONFIGURATIONS, "herder")).ok["webhooks"]}
    hook = hooks["restrict.herder.dev"]
    assert (hook["failurePolicy"], hook["sideEffects"], len(hook["matchConditions"])) == ("Fail", "None", 1)
    assert all(f"'{name}'" in hook["matchConditions"][0]["expression"] for name in RESERVED)
    await registration.remove()
