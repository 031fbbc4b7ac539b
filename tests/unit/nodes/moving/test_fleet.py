"""Simulated nodes whose process was restarted: what was given away does not come to life again."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from herder.api import labels
from herder.api.world import RealWorld
from herder.app.inside import InsideTransport
from herder.kube.client import Client
from herder.nodes.fleet import Fleet
from herder.nodes.node import NodeSettings
from herder.server.request import ENGINE
from tests.engines.waiting import eventually
from tests.unit.server.inside import Inside, engine_inside

PODS = "/api/v1/namespaces/default/pods"
INSTANCE = {"instance": {"namespace": "default", "name": "i", "uid": "u"}, "spec": {"domain": {"devices": {}}}}
NODES = tuple(NodeSettings(name=name) for name in ("n1", "n2"))
MIGRATION = "migration-1"


@asynccontextmanager
async def fleet(inside: Inside) -> AsyncGenerator[None]:
    client = Client(InsideTransport(inside.router, "fleet", user=ENGINE), "fleet")
    nodes = Fleet(client, RealWorld(), NODES, CollectorRegistry())
    task = asyncio.create_task(nodes.run())
    try:
        await asyncio.wait_for(nodes.registered.wait(), 30)
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def made(inside: Inside, name: str, node: str, **annotations: str) -> str:
    metadata = {"name": name, "annotations": {labels.GUEST: json.dumps(INSTANCE), **annotations}}
    spec = {"nodeName": node, "restartPolicy": "Never", "containers": [{"name": "compute", "image": "x"}]}
    code, pod = await inside.ask("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert code == 201, pod
    return pod["metadata"]["uid"]


async def report(inside: Inside, name: str) -> dict[str, Any]:
    _, pod = await inside.ask("GET", f"{PODS}/{name}")
    found = [one for one in pod.get("status", {}).get("conditions", []) if one["type"] == labels.GUEST_CONDITION]
    return json.loads(found[0]["message"]) if found else {}


async def until(inside: Inside, name: str, state: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = await report(inside, name)
        return found if found.get("state") == state else None

    found = await eventually(look, patience=60)
    assert found is not None
    return found


async def order(inside: Inside, source: str, target_uid: str, address: str, **more: Any) -> None:
    told = {"migration": MIGRATION, "settings": {}, "targetPod": target_uid, "targetNode": "n2", "address": address, **more}
    patch = {"metadata": {"annotations": {labels.MIGRATION: json.dumps(told)}}}
    code, answer = await inside.ask("PATCH", f"{PODS}/{source}", patch, content_type="application/merge-patch+json")
    assert code == 200, answer


async def moved(inside: Inside) -> None:
    """A guest that runs on n1 goes to n2."""
    await made(inside, "source", "n1")
    await until(inside, "source", "Running")
    started = (await report(inside, "source"))["started"]
    incoming = json.dumps({**INSTANCE, "incoming": started})
    target = json.dumps({"migration": MIGRATION, "settings": {}, "sourceNode": "n1"})
    uid = await made(inside, "target", "n2", **{labels.GUEST: incoming, labels.MIGRATION: target})
    address = (await until(inside, "target", "Incoming"))["migration"]["address"]
    await order(inside, "source", uid, address)
    assert (await until(inside, "target", "Running"))["migration"]["takenOver"] is True


@pytest.mark.slow
async def test_a_guest_moves_between_the_nodes_of_a_fleet(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside, fleet(inside):
        await moved(inside)
        told = (await until(inside, "source", "HandedOver"))["migration"]
        assert (told["handedOver"], told["progress"]["percent"]) == (True, 100)


@pytest.mark.slow
async def test_a_guest_that_left_does_not_run_again_when_the_fleet_is_restarted(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        async with fleet(inside):
            await moved(inside)
            await until(inside, "source", "HandedOver")
        # As if the process had died before it could say so of the source.
        _, pod = await inside.ask("GET", f"{PODS}/source")
        state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        for one in pod["status"]["conditions"]:
            if one["type"] == labels.GUEST_CONDITION:
                one["message"] = json.dumps({"state": "Running"})
        pod["status"]["phase"] = "Running"
        pod["status"]["containerStatuses"][0]["state"] = state
        code, answer = await inside.ask("PUT", f"{PODS}/source/status", pod)
        assert code == 200, answer
        async with fleet(inside):
            await until(inside, "source", "HandedOver")
            assert (await until(inside, "target", "Running"))["migration"]["takenOver"] is True
