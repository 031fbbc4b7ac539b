"""Nodes by the thousand speak less often, each of them, so that all together they do not speak too much."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld
from herder.app.inside import InsideTransport
from herder.kube.client import Client
from herder.nodes import fleet as fleet_module
from herder.nodes.fleet import Fleet
from herder.nodes.node import NodeSettings
from herder.server.request import ENGINE
from tests.engines.waiting import eventually
from tests.unit.server.inside import engine_inside


@pytest.mark.slow
@pytest.mark.parametrize(("heartbeat", "lasts"), [(None, 48), (5.0, 20)])
async def test_leases_of_many_last_longer_unless_it_is_said_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heartbeat: float | None, lasts: int
) -> None:
    """Also with those counted that a person has written: six that may renew one Lease in two seconds, all together."""
    monkeypatch.setattr(fleet_module, "RENEWALS_PER_SECOND", 0.5)
    async with engine_inside(tmp_path) as inside:
        labels = {"herder.dev/runtime": "simulated"}
        written = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "written", "labels": labels}}
        assert (await inside.ask("POST", "/api/v1/nodes", written))[0] == 201
        asked_for = tuple(NodeSettings(name=f"n-{number}") for number in range(5))
        client = Client(InsideTransport(inside.router, "test", user=ENGINE), "test")
        fleet = Fleet(client, RealWorld(), asked_for, CollectorRegistry(), renew_every=heartbeat)
        running = asyncio.create_task(fleet.run())

        async def told() -> bool:
            code, lease = await inside.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n-4")
            return code == 200 and lease["spec"]["leaseDurationSeconds"] == lasts

        try:
            await eventually(told, patience=60)
        finally:
            running.cancel()
            await asyncio.wait([running])
