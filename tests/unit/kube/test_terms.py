"""What a process says about its work once it leads no more, and when it leads again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from herder.api.registry import INSTANCE, JOB, RESERVATION
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.controller import DONE, Result
from herder.kube.enqueue import enqueue
from herder.kube.errors import Unreachable
from herder.kube.events import Recorder
from herder.kube.kit import Kit, Runs, run_controllers
from herder.kube.resources import CONFIG_MAPS, NODES, PODS, Key
from herder.scheduler import scheduler
from tests.unit.kube.engine import Line, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time, samples
from tests.unit.rules.placement.cluster import pod

OURS = "herder-scheduler"
MAPS = ("a", "b", "c")


class Slow:
    """Takes its time for the first of its names, so that the others wait."""

    name = "slow"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def start(self, kit: Kit) -> Runs:
        # Known before any of them is worked on; but nobody works before these are known, too.
        kit.caches.of(NODES)
        queue = kit.queue(self.name)
        enqueue(kit.caches.of(CONFIG_MAPS), queue, lambda stored: [stored.key] if stored.key.namespace == "default" else [])
        return kit.work(self, queue)

    async def reconcile(self, key: Key) -> Result:
        await asyncio.sleep(self._seconds)
        return DONE


class Leader:
    def __init__(self, line: Line, world: VirtualWorld) -> None:
        self.line = line
        self.registry = CollectorRegistry()
        self._client = Client(line, "herder")
        self._world = world
        self._recorder = Recorder(self._client, world, "herder.dev/controllers", registry=self.registry)

    @asynccontextmanager
    async def term(self, seconds: float = 1000.0) -> AsyncGenerator[None]:
        """With so much time for each name, and half a minute after its begin."""
        kit = Kit(self._client, Caches(self._client, self._world, self.registry), self._recorder, self._world, self.registry)
        leading = asyncio.create_task(run_controllers(kit, (Slow(seconds).start, scheduler((OURS,)))))
        await asyncio.sleep(30.0)
        try:
            yield
        finally:
            leading.cancel()
            await asyncio.wait([leading])

    def number(self, name: str, *labels: str) -> float | None:
        return samples(self.registry, name).get(labels)

    def gauges(self) -> dict[str, float]:
        """Those that are not zero."""
        return {
            f"{one.name}{one.labels}": one.value
            for family in self.registry.collect()
            for one in family.samples
            if family.type == "gauge" and not one.name.endswith("_created") and one.value
        }


@asynccontextmanager
async def _leader() -> AsyncGenerator[Leader]:
    world = VirtualWorld()
    async with engine_in_virtual_time(world, (INSTANCE, RESERVATION, JOB)) as place:
        client = place.client()
        for name in MAPS:
            await client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": name}})
        document = pod("homeless", schedulerName=OURS)
        del document["metadata"]["uid"]
        await client.create(PODS, document)
        yield Leader(place.line(), world)


@pytest.mark.slow
def test_who_leads_no_more_shows_no_queue_no_cache_and_no_pod_that_waits_and_the_next_term_shows_its_own() -> None:
    async def scenario() -> None:
        async with _leader() as leader:
            async with leader.term():
                assert leader.number("workqueue_depth", "slow") == 2
                assert leader.number("workqueue_unfinished_work_seconds", "slow") == pytest.approx(30, abs=1)
                assert leader.number("workqueue_longest_running_processor_seconds", "slow") == pytest.approx(30, abs=1)
                assert leader.number("herder_pending_pods") == 1
                assert leader.number("herder_cache_objects", "pods", "") == 1
            assert leader.gauges() == {}
            assert leader.number("workqueue_adds_total", "slow") == 3, "what was counted stays"
            await asyncio.sleep(60.0)
            async with leader.term(seconds=20.0):
                assert leader.number("workqueue_depth", "slow") == 1, "its own, and not those of the term before"
                assert leader.number("workqueue_adds_total", "slow") == 6, "it goes on where it was"
                assert leader.number("herder_pending_pods") == 1
                assert leader.number("herder_cache_objects", "pods", "") == 1
            assert leader.gauges() == {}

    in_virtual_time(scenario())


@pytest.mark.slow
def test_a_term_that_ended_before_anybody_worked_leaves_no_queue_behind() -> None:
    async def scenario() -> None:
        async with _leader() as leader:
            leader.line.refusals["/nodes"] = Unreachable("not now")
            async with leader.term():
                assert leader.number("workqueue_depth", "slow") == 3
                assert leader.number("workqueue_work_duration_seconds_count", "slow") == 0, "nobody works yet"
            assert leader.gauges() == {}

    in_virtual_time(scenario())


@pytest.mark.slow
def test_queues_of_one_name_count_together() -> None:
    async def scenario() -> None:
        async with _leader() as leader, leader.term(), leader.term():
            assert leader.number("workqueue_depth", "slow") == 4
            assert leader.number("workqueue_longest_running_processor_seconds", "slow") == pytest.approx(60, abs=1)

    in_virtual_time(scenario())
