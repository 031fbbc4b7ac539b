"""A tenant who writes orders into pods of his own, without anybody who would keep him from it: no guest of others is reached."""

import json
from pathlib import Path
from typing import Any

import pytest

from herder.api import labels
from tests.engines.waiting import eventually
from tests.unit.nodes.moving.test_fleet import MIGRATION, fleet, until
from tests.unit.server.inside import Inside, engine_inside

Json = dict[str, Any]
VICTIM, TENANT = "default", "kube-public"


def guest(namespace: str, **more: Any) -> Json:
    return {
        "instance": {"namespace": namespace, "name": "i", "uid": f"of-{namespace}"},
        "spec": {"domain": {"devices": {}}},
        **more,
    }


def path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}".rstrip("/")


async def put(inside: Inside, namespace: str, name: str, node: str, definition: Json, **annotations: str) -> str:
    metadata = {"name": name, "annotations": {labels.GUEST: json.dumps(definition), **annotations}}
    spec = {"nodeName": node, "restartPolicy": "Never", "containers": [{"name": "compute", "image": "x"}]}
    code, pod = await inside.ask("POST", path(namespace), {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert code == 201, pod
    return pod["metadata"]["uid"]


async def report_of(inside: Inside, namespace: str, name: str) -> Json:
    _, pod = await inside.ask("GET", path(namespace, name))
    found = [one for one in pod.get("status", {}).get("conditions", []) if one["type"] == labels.GUEST_CONDITION]
    return json.loads(found[0]["message"]) if found else {}


async def waits(inside: Inside, namespace: str) -> tuple[str, str]:
    """A target that waits for the memory of its guest: its pod's uid, and where it waits."""
    started = (await until(inside, "source", "Running"))["started"]
    target = json.dumps({"migration": MIGRATION, "settings": {}, "sourceNode": "n1"})
    incoming = guest(namespace, incoming=started)
    uid = await put(inside, namespace, "target", "n2", incoming, **{labels.MIGRATION: target})

    async def address() -> str:
        told = await report_of(inside, namespace, "target")
        return told["migration"]["address"] if told.get("state") == "Incoming" else ""

    return uid, await eventually(address, patience=60)


async def go(inside: Inside, namespace: str, name: str, target: str, address: str) -> Json:
    """How the move ends that this order asks for."""
    order = {"migration": MIGRATION, "settings": {}, "targetPod": target, "targetNode": "n2", "address": address}
    patch = {"metadata": {"annotations": {labels.MIGRATION: json.dumps(order)}}}
    code, answer = await inside.ask("PATCH", path(namespace, name), patch, content_type="application/merge-patch+json")
    assert code == 200, answer

    async def over() -> Json | None:
        told = (await report_of(inside, namespace, name)).get("migration") or {}
        return told if told.get("failed") or told.get("handedOver") else None

    ended = await eventually(over, patience=60)
    assert ended is not None
    return ended


@pytest.mark.slow
async def test_a_tenants_guest_does_not_go_on_in_the_place_of_somebody_elses(tmp_path: Path) -> None:
    """It would have the other's disks. He knows all that there is to know of the other's migration."""
    async with engine_inside(tmp_path) as inside, fleet(inside):
        await put(inside, VICTIM, "source", "n1", guest(VICTIM))
        uid, address = await waits(inside, VICTIM)
        await put(inside, TENANT, "mine", "n1", guest(TENANT))

        async def runs() -> bool:
            return (await report_of(inside, TENANT, "mine")).get("state") == "Running"

        await eventually(runs, patience=60)
        told = await go(inside, TENANT, "mine", uid, address)
        assert told["failed"] == "ShapesDiffer"
        assert "instance is 'kube-public/i of-kube-public' at the source" in told["message"]
        assert (await report_of(inside, VICTIM, "target"))["state"] == "Incoming"
        assert (await go(inside, VICTIM, "source", uid, address)).get("handedOver") is True


@pytest.mark.slow
async def test_no_pod_of_a_tenant_takes_the_memory_of_somebody_elses_guest(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside, fleet(inside):
        await put(inside, VICTIM, "source", "n1", guest(VICTIM))
        uid, address = await waits(inside, TENANT)
        told = await go(inside, VICTIM, "source", uid, address)
        assert told["failed"] == "ShapesDiffer"
        assert (await report_of(inside, VICTIM, "source"))["state"] == "Running"


@pytest.mark.slow
async def test_a_guest_cannot_say_that_it_is_of_another_namespace(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside, fleet(inside):
        await put(inside, TENANT, "forged", "n1", guest(VICTIM))

        async def refused() -> Json | None:
            status = (await inside.ask("GET", path(TENANT, "forged")))[1]["status"]
            return status if status.get("phase") == "Failed" else None

        status = await eventually(refused, patience=60)
        assert (
            status is not None
            and status["message"] == "the pod says that it is for instance default/i, and is in namespace kube-public"
        )
