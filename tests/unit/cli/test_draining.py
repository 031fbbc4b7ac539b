"""`herder drain` counts all guests that leave, also those that are quicker than its first look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from herder.api.labels import NODE_NAME
from herder.api.registry import INSTANCE, MACHINE, MIGRATION
from herder.app.inside import InsideTransport
from herder.cli.drain_follower import NodeFollower, guests_on
from herder.cli.progress import display
from herder.kube.client import Client
from herder.kube.resources import INSTANCES, Key, key_of, written
from herder.rules.configuration import cluster_migration_settings
from herder.server.request import ENGINE
from tests.unit.server.inside import engine_inside

GUEST = Key("default", "quick")


async def _runs_on(client: Client, node: str) -> None:
    await client.patch(INSTANCES, GUEST, {"metadata": {"labels": {NODE_NAME: node}}})
    await client.patch(INSTANCES, GUEST, {"status": {"phase": "Running", "nodeName": node}}, subresource="status")


async def test_a_guest_that_has_left_before_anybody_looks_again_counts(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=(MACHINE, INSTANCE, MIGRATION)) as inside:
        client = Client(InsideTransport(inside.router, "test", user=ENGINE), "test")
        spec: dict[str, Any] = {"domain": {"memory": {"guest": "64Mi"}}}
        await client.create(written(INSTANCES), {"metadata": {"name": GUEST.name}, "spec": spec}, GUEST.namespace)
        await _runs_on(client, "a")
        there = [key_of(one) for one in await guests_on(client, "a")]
        await _runs_on(client, "b")
        with display() as shown:
            rows = await NodeFollower(client, "a", cluster_migration_settings(None), shown, there).until_settled()
        assert [(row.name, row.state, row.text) for row in rows] == [("default/quick", "done", "moved to b")]
