"""What our client makes of a server that goes away, and comes back; and of one behind a proxy."""

import asyncio
from pathlib import Path

import pytest

from herder.kube.client import Selection
from herder.kube.errors import Unreachable
from herder.kube.resources import CONFIG_MAPS, Key
from tests.behaviour.clients import admin_of, cluster_of, connected, who, write_kubeconfig
from tests.behaviour.forwarding import wire_to
from tests.behaviour.manifests import config_map
from tests.engines.engine import Engine


@pytest.mark.slow
async def test_a_watch_whose_server_goes_away_breaks_off_and_can_be_resumed(engine: Engine, namespace: str, tmp_path: Path) -> None:
    async with wire_to(engine.server) as wire:
        cluster = cluster_of(engine, server=f"https://127.0.0.1:{wire.port}")
        async with connected(write_kubeconfig(tmp_path / "config", cluster, admin_of(engine))) as client:
            selection = Selection(namespace, labels="app=test")
            start = (await client.list(CONFIG_MAPS, selection)).resource_version
            events = client.watch(CONFIG_MAPS, start, selection)
            first = asyncio.ensure_future(anext(events))
            await client.create(CONFIG_MAPS, config_map("a", labels={"app": "test"}), namespace)
            assert (await asyncio.wait_for(first, 15)).type == "ADDED"
            wire.cut()
            with pytest.raises(Unreachable, match="no whole answer"):
                async for _ in events:
                    pass
            with pytest.raises(Unreachable):
                await client.create(CONFIG_MAPS, config_map("b", labels={"app": "test"}), namespace)
            with pytest.raises(Unreachable):
                await client.find(CONFIG_MAPS, Key(namespace, "a"))
            await wire.open()
            await client.create(CONFIG_MAPS, config_map("c", labels={"app": "test"}), namespace)
            again = [event.type async for event in client.watch(CONFIG_MAPS, start, selection, seconds=1)]
            assert [kind for kind in again if kind != "BOOKMARK"] == ["ADDED", "ADDED"]


async def test_a_server_behind_a_proxy_is_spoken_to_through_it(engine: Engine, tmp_path: Path) -> None:
    async with wire_to(engine.server) as proxy:
        cluster = cluster_of(engine, **{"proxy-url": f"http://127.0.0.1:{proxy.port}"})
        async with connected(write_kubeconfig(tmp_path / "config", cluster, admin_of(engine))) as client:
            assert "system:masters" in (await who(client.transport))[1]
        assert proxy.asked == [f"CONNECT {engine.server.removeprefix('https://')} HTTP/1.1"]


async def test_a_proxy_that_is_not_there_is_unreachable(engine: Engine, tmp_path: Path) -> None:
    async with wire_to(engine.server) as proxy:
        proxy.cut()
        cluster = cluster_of(engine, **{"proxy-url": f"http://127.0.0.1:{proxy.port}"})
        async with connected(write_kubeconfig(tmp_path / "config", cluster, admin_of(engine))) as client:
            with pytest.raises(Unreachable):
                await client.list(CONFIG_MAPS)
