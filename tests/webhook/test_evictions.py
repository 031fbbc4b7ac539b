"""A pod that a guest runs in is not evicted from a real cluster: it is refused, and the guest is asked to leave."""

from typing import Any

import pytest

from herder.api import labels, registry
from herder.controllers.evictions import EvictionOfGuests
from herder.kube.client import Client
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Api, Json
from tests.engines.resources import PODS
from tests.engines.waiting import eventually
from tests.webhook.replicas import MovedWorld, registered, running, some_settings

pytestmark = pytest.mark.kubernetes
INSTANCES = resource_of(registry.INSTANCE)
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
