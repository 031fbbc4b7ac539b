"""herder-config is followed while the controllers run, and what is wrong with it is told once; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from herder.controllers.configuration import ConfigurationEvents, HerderConfig
from herder.kube.cache import Caches
from herder.kube.client import Client, Selection
from herder.kube.events import Recorder
from herder.kube.kit import Kit, Runs, run_controllers
from herder.kube.resources import CONFIG_MAPS, EVENTS, Key
from herder.rules.herder_config import JOBS, POOLS, JobsConfig
from tests.unit.kube.engine import Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

WHERE = Key("herder-system", "herder-config")
BAD = (
    "pools.yaml: burst: 0 is wrong: must be a whole number of machines per pool from 1 to 5000, or left out for 250;"
    " still in use: burst: {}"
)


class Stage:
    def __init__(self, place: Place, world: VirtualWorld) -> None:
        self.client, self._place, self._world = place.client(), place, world
        self.config: HerderConfig | None = None
        # What was in use at each call of who follows pools.yaml, and how often who follows another file was called.
        self.woken: list[int] = []
        self.others: list[str] = []

    def _follow(self, kit: Kit) -> Runs:
        """As a second controller of the same term."""
        self.config = config = HerderConfig(kit.caches)
        config.subscribe(lambda: self.woken.append(config.pools().burst), POOLS)
        config.subscribe(lambda: self.others.append("called"), "jobs.yaml")
        return ConfigurationEvents.start(kit)

    @asynccontextmanager
    async def term(self) -> AsyncGenerator[None]:
        ours = Client(self._place.line(), "herder")
        recorder = Recorder(ours, self._world, "herder.dev/controllers")
        kit = Kit(ours, Caches(ours, self._world), recorder, self._world, CollectorRegistry())
        tasks = [asyncio.create_task(recorder.run()), asyncio.create_task(run_controllers(kit, (self._follow,)))]
        await asyncio.sleep(1)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def make(self, text: str, **data: str) -> None:
        metadata = {"namespace": WHERE.namespace, "name": WHERE.name}
        await self.client.create(CONFIG_MAPS, {"metadata": metadata, "data": {POOLS: text, **data}})
        await asyncio.sleep(1)

    async def change(self, **patch: Any) -> None:
        await self.client.patch(CONFIG_MAPS, WHERE, patch)
        await asyncio.sleep(1)

    async def write(self, text: str) -> None:
        await self.change(data={POOLS: text})

    async def delete(self) -> None:
        await self.client.delete(CONFIG_MAPS, WHERE)
        await asyncio.sleep(1)

    def burst(self) -> int:
        assert self.config is not None
        return self.config.pools().burst

    async def told(self) -> list[tuple[str, str, str]]:
        listed = (await self.client.list(EVENTS, Selection(WHERE.namespace))).items
        assert all(one.regarding is not None and one.regarding.name == WHERE.name for one in listed)
        assert all(one.series is None for one in listed), "each is told once"
        return [(one.type, one.reason, one.note) for one in sorted(listed, key=lambda one: str(one.event_time))]


def on_stage(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world) as place:
            await scenario(Stage(place, world))

    in_virtual_time(run())


def test_settings_of_jobs_are_followed_parsed_and_a_bad_one_leaves_the_last_good_one() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.term():
            assert stage.config is not None
            assert stage.config.jobs() == JobsConfig()
            await stage.make("burst: 7", **{JOBS: "pendingTTL: 1h"})
            assert (stage.config.jobs().pending_ttl, stage.config.jobs().evict_burst) == (3600.0, 1)
            await stage.change(data={JOBS: "pendingTTL: soon\nevictBurst: 5"})
            assert (stage.config.jobs().pending_ttl, stage.config.jobs().evict_burst) == (3600.0, 1)
            assert stage.others == ["called"], "a mistake wakes nobody"
            await stage.change(data={JOBS: None})
            assert stage.config.jobs() == JobsConfig()
            assert stage.burst() == 7

    on_stage(scenario)


def test_a_change_is_in_use_without_a_restart_and_a_bad_one_leaves_the_last_good_one() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.term():
            assert stage.burst() == 250
            await stage.make("burst: 7")
            await stage.write("burst: 0")
            assert stage.burst() == 7
            await stage.change(metadata={"labels": {"looked": "at"}})
            await stage.change(data={"poools.yaml": ""})
            await stage.change(data={"poools.yaml": None})
            await stage.write("burst: 9")
            assert await stage.told() == [
                ("Normal", "ConfigurationInUse", "pools.yaml: in use: burst: 7"),
                ("Warning", "ConfigurationRefused", BAD.format(7)),
                (
                    "Warning",
                    "ConfigurationRefused",
                    'unknown file "poools.yaml", did you mean pools.yaml?; known are pools.yaml, jobs.yaml',
                ),
                ("Normal", "ConfigurationInUse", "pools.yaml: in use: burst: 9"),
            ]
            await stage.write("burst: 9 # as it was")
            await stage.delete()
            assert stage.woken == [7, 9, 250]
            assert stage.others == []

    on_stage(scenario)


def test_after_a_restart_a_bad_one_leaves_what_is_built_in_and_is_told_again() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.term():
            await stage.make("burst: 7")
            await stage.write("burst: 0")
        async with stage.term():
            assert stage.burst() == 250
            assert await stage.told() == [
                ("Normal", "ConfigurationInUse", "pools.yaml: in use: burst: 7"),
                ("Warning", "ConfigurationRefused", BAD.format(7)),
                ("Warning", "ConfigurationRefused", BAD.format(250)),
            ]

    on_stage(scenario)


def test_a_good_one_that_was_there_at_the_start_is_in_use_and_no_news() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.make("burst: 7")
        async with stage.term():
            assert stage.burst() == 7
            assert await stage.told() == []

    on_stage(scenario)


def test_no_other_config_map_is_held_or_read() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.term():
            for where in ("default", WHERE.namespace):
                name = WHERE.name if where == "default" else "other"
                document = {"metadata": {"namespace": where, "name": name}, "data": {POOLS: "burst: 1"}}
                await stage.client.create(CONFIG_MAPS, document)
            await asyncio.sleep(1)
            assert stage.config is not None
            assert stage.config.cache.keys() == ()
            assert stage.burst() == 250

    on_stage(scenario)
