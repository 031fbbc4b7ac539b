"""The numbers of pools on /metrics: of pools that there are, and of no other."""

import asyncio

from herder.kube.resources import MACHINES, POOLS, Key
from tests.unit.controllers.pool_cluster import Cluster, play, pool

OF_POOL = {"namespace": "default", "vmpool": "web"}
WEB = Key("default", "web")
SICK = {"startFailure": {"consecutiveFailCount": 3, "firstFailureTimestamp": "2020-01-01T00:00:00Z"}}


def healed(cluster: Cluster) -> float | None:
    return cluster.registry.get_sample_value("herder_pool_healed_total", OF_POOL)


def shown(cluster: Cluster) -> list[str]:
    samples = [one for family in cluster.registry.collect() for one in family.samples]
    return [one.name for one in samples if one.labels.get("vmpool") == "web"]


async def make(cluster: Cluster) -> None:
    always = {"runStrategy": "Always", "template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}}}}
    await cluster.make(1, autohealing={}, template={"spec": always})


async def fall_sick(cluster: Cluster) -> None:
    await cluster.person.patch(MACHINES, Key("default", "web-1"), {"status": SICK}, subresource="status")
    await asyncio.sleep(5)


def test_numbers_are_of_the_pool_that_there_is_and_go_with_it() -> None:
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        assert healed(cluster) == 0
        await fall_sick(cluster)
        assert healed(cluster) == 1
        # Another one under its name, before anybody has looked.
        await cluster.person.delete(POOLS, WEB, propagation="Background")
        await cluster.person.create(POOLS, pool(0))
        await asyncio.sleep(5)
        assert healed(cluster) == 0
        await cluster.person.delete(POOLS, WEB, propagation="Background")
        await asyncio.sleep(5)
        assert shown(cluster) == []

    play(story)


def test_a_pool_that_goes_while_its_machine_is_healed_leaves_no_number_behind() -> None:
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        cluster.late.before_delete = lambda: cluster.person.delete(POOLS, WEB, propagation="Background")
        await fall_sick(cluster)
        assert cluster.late.before_delete is None
        assert shown(cluster) == []

    play(story)


def test_numbers_end_with_the_term_of_who_shows_them() -> None:
    async def story(cluster: Cluster) -> None:
        async with cluster.leads():
            await make(cluster)
            assert healed(cluster) == 0
        assert shown(cluster) == []

    play(story, leads=False)
