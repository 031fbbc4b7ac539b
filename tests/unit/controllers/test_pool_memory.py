"""What the controller of pools keeps in mind goes with the pools that it is about: people make and delete as many as they like."""

import asyncio
from typing import Any

from herder.controllers.pool import Pools
from herder.kube.client import Selection
from herder.kube.resources import CONTROLLER_REVISIONS, POOLS, Key
from tests.unit.controllers.pool_cluster import Cluster, play, pool


class Known(Pools):
    """It can be asked how much it keeps."""

    last: "Known"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        type(self).last = self

    def kept(self) -> dict[str, int]:
        return {
            f"{type(one).__name__}.{name}": len(value)
            for one in (self, self._snapshots)
            for name, value in vars(one).items()
            if isinstance(value, dict)
        }


async def delete(cluster: Cluster, name: str) -> None:
    """In the background, as kubectl does it: the pool is gone at once, and what it made goes after it."""
    await cluster.person.delete(POOLS, Key("default", name), propagation="Background")
    for one in (await cluster.person.list(CONTROLLER_REVISIONS, Selection(namespace="default"))).items:
        if one.name.startswith(f"{name}-"):
            await cluster.person.delete(CONTROLLER_REVISIONS, Key("default", one.name))


def test_nothing_is_kept_of_pools_that_are_gone() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make(1)
        before = Known.last.kept()
        assert any(before.values())
        for number in range(3):
            await cluster.person.create(POOLS, pool(1, name=f"brief{number}"))
            await asyncio.sleep(2)
            assert Known.last.kept() != before
            await delete(cluster, f"brief{number}")
            await asyncio.sleep(2)
        assert Known.last.kept() == before

    play(story, Known)


def test_nothing_is_kept_of_a_pool_that_goes_while_its_machines_are_made_or_that_is_made_again_at_once() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make(1)
        before = Known.last.kept()
        cluster.late.before_write = lambda: delete(cluster, "brief")
        await cluster.person.create(POOLS, pool(1, name="brief"))
        await asyncio.sleep(5)
        assert Known.last.kept() == before
        for _ in range(3):
            await delete(cluster, "web")
            await cluster.person.create(POOLS, pool(1))
        await asyncio.sleep(5)
        assert Known.last.kept() == before

    play(story, Known)
