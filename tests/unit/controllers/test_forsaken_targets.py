"""Before a target that nobody sends a guest to any more is given up, the API server is asked whether it runs meanwhile."""

import asyncio
from pathlib import Path

import pytest

from herder.api.world import RealWorld
from herder.app.inside import InsideTransport
from herder.controllers.launchers import has_changed
from herder.kube.cache import Cache
from herder.kube.client import Client, Selection
from herder.kube.resources import PODS, Key
from herder.server.request import ENGINE
from tests.unit.server.inside import engine_inside

WHERE = Key("default", "target")
TARGET = {"metadata": {"name": "target"}, "spec": {"containers": [{"name": "compute", "image": "x"}]}}


@pytest.mark.slow
async def test_a_target_that_has_changed_since_the_cache_saw_it_is_looked_at_again(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        client = Client(InsideTransport(inside.router, "test", user=ENGINE), "test")
        pods = Cache(client, PODS, Selection(), RealWorld())
        seen = await client.create(PODS, TARGET, "default")
        assert not await has_changed(client, pods, seen)
        cached = asyncio.create_task(pods.run())
        try:
            await pods.wait_synced()
            await client.patch(PODS, WHERE, {"metadata": {"labels": {"it": "runs"}}})
            assert await has_changed(client, pods, seen)
            now = pods.get(WHERE)
            assert now is not None and now.labels == {"it": "runs"}, "the next look is at what is so now"
            assert not await has_changed(client, pods, now)
        finally:
            cached.cancel()
            await asyncio.wait([cached])
