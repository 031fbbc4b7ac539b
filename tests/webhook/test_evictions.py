"""A pod that a guest runs in is not evicted from a real cluster: it is refused, and the guest is asked to leave."""

from typing import Any

import aiohttp
import pytest

from herder.api import labels, registry
from herder.controllers.evictions import EvictionOfGuests
from herder.kube.client import Client
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Api, Json
from tests.engines.resources import PODS, Resource
from tests.engines.waiting import eventually
from tests.webhook.replicas import MovedWorld, registered, running, some_settings

pytestmark = pytest.mark.kubernetes
INSTANCES = resource_of(registry.INSTANCE)
CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
MOVABLE = {"type": "LiveMigratable", "status": "True", "reason": "Migratable", "lastTransitionTime": "2026-01-01T00:00:00Z"}


async def guest(api: Api, name: str, strategy: str) -> Json:
    document = {"metadata": {"name": name}, "spec": {"domain": {}, "evictionStrategy": strategy}}
    made = (await api.create(INSTANCES, document, "default")).ok
    (await api.patch(INSTANCES, name, {"status": {"phase": "Running", "conditions": [MOVABLE]}}, "default", "status")).ok  # noqa: B018
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": name, "uid": made["metadata"]["uid"]}
    metadata = {"name": name, "labels": {labels.APP: labels.LAUNCHER}, "ownerReferences": [{**owner, "controller": True}]}
    spec: dict[str, Any] = {
        "nodeName": "node-1",
        "containers": [{"name": "compute", "image": "i"}],
        "terminationGracePeriodSeconds": 0,
    }
    (await api.create(PODS, {"metadata": metadata, "spec": spec}, "default")).ok  # noqa: B018
    return made


async def evict(api: Api, name: str, **options: Any) -> tuple[int, str]:
    document = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}, **options}
    reply = await api.request("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", document)
    return reply.code, reply.body.get("message", "")


async def wish(api: Api, name: str) -> str | None:
    return (await api.get(INSTANCES, name, "default")).ok["metadata"].get("annotations", {}).get(labels.EVACUATE)


async def test_who_is_to_be_moved_is_refused_and_asked_to_leave(api: Api, client: Client) -> None:
    world, settings = MovedWorld(0), some_settings()
    async with running(client, world, settings, EvictionOfGuests(client)), registered(client, world, settings, api):
        await guest(api, "moves", "LiveMigrate")

        async def refused() -> str:
            code, message = await evict(api, "moves", deleteOptions={"dryRun": ["All"]})
            assert code == 429, (code, message)
            return message

        assert "is moved to another node instead" in await eventually(refused)
        assert await wish(api, "moves") is None, "a dry run leaves no trace"
        assert (await evict(api, "moves"))[0] == 429
        assert await wish(api, "moves") == "node-1"
        await guest(api, "goes", "None")
        assert (await evict(api, "goes"))[0] == 201


def review(pod: str) -> Json:
    """As an API server asks: may this pod be evicted?"""
    request = {
        "uid": "12345678-0000-0000-0000-000000000000",
        "kind": {"group": "policy", "version": "v1", "kind": "Eviction"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "eviction",
        "name": pod,
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "somebody"},
        "object": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def known_path(api: Api) -> str:
    """Where the API server is told to ask: only the registration knows it."""
    webhooks = [hook for one in (await api.list(CONFIGURATIONS)).ok["items"] for hook in one["webhooks"]]
    (url,) = [hook["clientConfig"]["url"] for hook in webhooks if hook["name"] == "evict.herder.dev"]
    return url


async def test_only_who_knows_the_word_may_ask(api: Api, client: Client) -> None:
    world, settings = MovedWorld(0), some_settings()
    async with running(client, world, settings, EvictionOfGuests(client)), registered(client, world, settings, api):
        await guest(api, "asked-about", "LiveMigrate")
        url = await known_path(api)
        base, word = url.rsplit("/", 1)
        assert len(word) == 32 and base.endswith("/evict")
        wrong = ["", "/", "/word", f"/{word}x", f"/{word[:-1]}", f"/{word.upper()}", f"/{word}/", f"/x/{word}", f"?word={word}"]
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
            for path in wrong:
                async with session.post(base + path, json=review("asked-about")) as reply:
                    assert (path, reply.status) == (path, 404)
            assert await wish(api, "asked-about") is None, "who does not know it moves nobody"
            async with session.post(url, json=review("asked-about")) as reply:
                assert reply.status == 200
                assert (await reply.json())["response"]["allowed"] is False
        assert await wish(api, "asked-about") == "node-1"
