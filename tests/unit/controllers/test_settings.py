"""Whoever follows the settings of the cluster is called when they change."""

import asyncio

from prometheus_client import CollectorRegistry

from herder.api.registry import SETTINGS as SETTINGS_KIND
from herder.controllers.settings import ClusterSettings
from herder.kube.cache import Caches
from herder.kube.events import Recorder
from herder.kube.kit import Kit
from herder.kube.resources import SETTINGS, Key
from tests.unit.kube.engine import engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

ONE = Key("kubevirt", "kubevirt")


def test_what_is_reported_about_the_settings_makes_nobody_look_at_all_instances_again() -> None:
    async def main() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (SETTINGS_KIND,)) as place:
            client, registry = place.client(), CollectorRegistry()
            caches = Caches(client, world, registry)
            settings = ClusterSettings(Kit(client, caches, Recorder(client, world, "test"), world, registry))
            calls: list[int] = []
            settings.subscribe(lambda: calls.append(settings.of_migrations().parallel_per_cluster))
            watching = asyncio.create_task(caches.run())
            await caches.wait_synced()
            assert calls == [5], "those that are there from the start"
            for patch, subresource in (
                ({"status": {"phase": "Deployed"}}, "status"),
                ({"metadata": {"labels": {"a": "b"}}}, ""),
                ({"spec": {"configuration": {"migrations": {"parallelMigrationsPerCluster": 9}}}}, ""),
            ):
                made = await client.patch(SETTINGS, ONE, patch, subresource=subresource)
                await settings.cache.wait_seen(made.metadata.resource_version or "")
            assert calls == [5, 9]
            await client.delete(SETTINGS, ONE)
            await settings.cache.wait_gone(ONE)
            assert calls == [5, 9, 5]
            watching.cancel()

    in_virtual_time(main())
