"""Reservations at the mercy of every fault at every write: in the end each is where its status says, and taken by who says so."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.labels import RESERVATION_ALLOCATED
from herder.api.registry import INSTANCE, JOB, RESERVATION
from herder.controllers import EMBEDDED_ONLY
from herder.controllers.reservations import Reservations
from herder.kube.client import Client
from herder.kube.resources import NODES, REPLICA_SETS, RESERVATIONS, Key
from herder.scheduler import EMBEDDED_NAMES, scheduler
from tests.simulation.faults import CUT_OFF
from tests.simulation.matrix import Scenario, Step, matrix_for
from tests.simulation.workloads.scenario import make, patch

OWNER = {"controller": {"kind": "ReplicaSet", "name": "web", "namespace": "default"}}


def reserve(name: str, **spec: Any) -> Step:
    template = {
        "metadata": {"namespace": "default"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }

    async def step(client: Client) -> None:
        await client.create(RESERVATIONS, {"metadata": {"name": name}, "spec": {"template": template, "owners": [OWNER], **spec}})

    return step


def cordon(node: str) -> Step:
    async def step(client: Client) -> None:
        await client.patch(NODES, Key("", node), {"spec": {"unschedulable": True}})

    return step


async def open_it(client: Client) -> None:
    await client.patch(RESERVATIONS, Key("", "closed"), {"spec": {"unschedulable": False}})


def agreed(left: dict[str, bytes]) -> str:
    """Nothing where both pods run, and reservations and pods say the same of each other."""
    objects = {name: msgspec.json.decode(raw) for name, raw in left.items()}
    pods = {one["metadata"]["name"]: one for name, one in objects.items() if name.startswith("pods ")}
    held = {one["metadata"]["name"]: one for name, one in objects.items() if name.startswith("reservations.")}
    running = [name for name, pod in pods.items() if pod["status"].get("phase") == "Running"]
    if len(running) != 2 or len(pods) != 2:
        return f"two pods should run, but there are {sorted(pods)}, of which run {sorted(running)}"
    said = {name: [_taken(pod) for pod in pods.values()].count(name) for name in held}
    for name, reservation in held.items():
        status = reservation.get("status", {})
        wanted = ("Succeeded", 1) if status.get("phase") == "Succeeded" else ("Available", 0)
        if (status.get("phase"), said[name]) != wanted or status.get("nodeName") == "node-1":
            return f"{name} is {status}, and {said[name]} pods say that they took it"
    return ""


def _taken(pod: dict[str, Any]) -> str:
    text = pod["metadata"].get("annotations", {}).get(RESERVATION_ALLOCATED, "{}")
    return msgspec.json.decode(text).get("name", "")


HELD = Scenario(
    "held, moved and taken",
    kinds=(INSTANCE, RESERVATION, JOB),
    controllers=(*EMBEDDED_ONLY, Reservations.start, scheduler(EMBEDDED_NAMES)),
    steps=(
        make(REPLICA_SETS, 0),
        reserve("open"),
        reserve("closed", unschedulable=True),
        cordon("node-1"),
        patch(REPLICA_SETS, {"replicas": 1}),
        open_it,
        patch(REPLICA_SETS, {"replicas": 2}),
    ),
    expect=agreed,
    nodes=2,
    quiet=CUT_OFF + 15,
)
# Every fault at every write takes too long for every day: with another seed it is at others.
test_reservations_survive_the_faults_of_controllers = matrix_for(HELD, every=9)
