"""Reservations in a town: made, looked at, and taken by pods of a workload."""

from __future__ import annotations

from typing import Any

from herder.api.kinds import ReservationView
from herder.controllers.reservations import Reservations
from herder.kube.resources import JOBS, NODES, PODS, REPLICA_SETS, RESERVATIONS, Key
from herder.rules.placement.gather import Everything, snapshot_of
from tests.unit.rules.reservations.objects import document
from tests.unit.scheduler.place import Town, play

FOR_WEB: dict[str, Any] = {"controller": {"kind": "ReplicaSet", "name": "web", "namespace": "default"}}
_LABELS = {"app": "web"}
_TEMPLATE: dict[str, Any] = {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOAD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"replicas": 0, "selector": {"matchLabels": _LABELS}, "template": _TEMPLATE},
}
ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"
__all__ = ["ALLOCATED", "Town", "close", "free", "job", "play_with_reservations", "recounted", "reserve", "reserved", "web"]


def play_with_reservations(scenario: Any) -> None:
    play(scenario, starts=(Reservations.start,))


async def reserve(town: Town, name: str = "r", **more: Any) -> None:
    made = document(name, owners=more.pop("owners", [FOR_WEB]), **more)
    for field in ("uid", "creationTimestamp"):
        del made["metadata"][field]
    del made["status"]
    await town.client.create(RESERVATIONS, {"apiVersion": RESERVATIONS.api_version, "kind": "Reservation", **made})


async def reserved(town: Town, name: str = "r") -> ReservationView:
    return await town.client.get(RESERVATIONS, Key("", name))


async def close(town: Town, name: str, closed: bool) -> None:
    await town.client.patch(RESERVATIONS, Key("", name), {"spec": {"unschedulable": closed}})


async def web(town: Town, name: str, **more: Any) -> None:
    """A pod of the workload that reservations are for. The workload is there, and nobody makes pods of it."""
    found = await town.client.find(REPLICA_SETS, Key("default", "web")) or await town.client.create(REPLICA_SETS, WORKLOAD)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": found.uid, "controller": True}
    held = {"finalizers": more.pop("finalizers")} if "finalizers" in more else {}
    await town.pod(name, metadata={"ownerReferences": [owner], **held}, **more)


async def job(town: Town, name: str, pod: str) -> dict[str, Any]:
    """As the owner of what it reserves."""
    body = {"metadata": {"name": name}, "spec": {"podRef": {"namespace": "default", "name": pod}}}
    made = await town.client.create(JOBS, {"apiVersion": JOBS.api_version, "kind": JOBS.kind, **body})
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": name, "uid": made.uid, "controller": True}


def free(town: Town) -> dict[str, int]:
    """Processors that the scheduler thinks free, by node."""
    assert town.scheduler is not None
    nodes = town.scheduler.view.snapshot.nodes
    return {name: int(nodes.free["cpu"][row]) for name, row in nodes.rows.items()}


async def recounted(town: Town) -> dict[str, int]:
    """The same from nothing but the objects."""
    found, pods = (await town.client.list(NODES)).items, (await town.client.list(PODS)).items
    held = (await town.client.list(RESERVATIONS)).items
    nodes = snapshot_of(Everything(nodes=found, pods=pods, reservations=held)).nodes
    return {name: int(nodes.free["cpu"][row]) for name, row in nodes.rows.items()}
