"""What the migrations' numbers say, after real ones: each outcome from zero, how long they took, and who is still on the way."""

import asyncio
import random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from herder.api import reasons
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.events import Recorder
from herder.kube.kit import Kit, run_controllers
from herder.kube.resources import MIGRATIONS, POLICIES, SETTINGS, Key
from herder.rules.migration import UNDER_WAY
from tests.engines.waiting import eventually
from tests.simulation.cluster import CONTROLLERS, node
from tests.simulation.faults import AnswersLost
from tests.simulation.herd import scenario
from tests.simulation.herd.limits import runs
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation, simulate

GUESTS = ("vm-1", "vm-2")
PATIENCE = 600.0
SLOW = {"bandwidthPerMigration": "1Mi", "selectors": {"virtualMachineInstanceSelector": {"kubevirt.io/vm": "vm-1"}}}


class Numbers:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def __call__(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(f"herder_migration{name}", labels)

    def finished(self) -> dict[tuple[str, str], float]:
        """Those that are not zero."""
        samples = [one for family in self._registry.collect() for one in family.samples]
        found = [one for one in samples if one.name == "herder_migrations_finished_total" and one.value]
        return {(one.labels["result"], one.labels["reason"]): one.value for one in found}

    def on_their_way(self) -> dict[str, float | None]:
        return {phase: count for phase in ("Pending", *UNDER_WAY) if (count := self("s", phase=phase)) != 0}


def controllers(simulation: Simulation, registry: CollectorRegistry) -> Machine:
    async def main(machine: Machine) -> None:
        client, world = simulation.client(machine, CONTROLLERS), machine.world
        recorder = Recorder(client, world, "test", instance="test", registry=registry)
        await run_controllers(Kit(client, Caches(client, world, registry), recorder, world, registry), scenario.MOVED.controllers)

    return simulation.machine(CONTROLLERS, main)


async def prepare(simulation: Simulation, registry: CollectorRegistry) -> Client:
    nodes = [node(simulation, f"node-{number}") for number in (1, 2)]
    await simulation.started(controllers(simulation, registry), *nodes)
    person = simulation.client()
    await scenario.nodes_are_ready(person)
    spec = {"configuration": {"migrations": {"parallelMigrationsPerCluster": 1}}}
    await person.apply(SETTINGS, Key("kubevirt", "kubevirt"), {"spec": spec})
    for name in GUESTS:
        await scenario.make(name=name)(person)
        await eventually(lambda name=name: runs(person, name), patience=PATIENCE)
    return person


async def status(person: Client, name: str, phase: str) -> Any:
    """When it says so, with the numbers that belong to it."""

    async def look() -> Any:
        found = (await person.get(MIGRATIONS, Key(scenario.NAMESPACE, name))).status
        assert found is not None and found.phase == phase, found
        return found

    found = await eventually(look, patience=PATIENCE)
    # The answer has reached the controller, too.
    await asyncio.sleep(1.0)
    return found


async def cancelled(person: Client, *names: str) -> None:
    for name in names:
        await person.delete(MIGRATIONS, Key(scenario.NAMESPACE, name))

    async def gone() -> bool:
        return all([await person.find(MIGRATIONS, Key(scenario.NAMESPACE, name)) is None for name in names])

    await eventually(gone, patience=PATIENCE)
    await asyncio.sleep(1.0)


async def story(simulation: Simulation) -> None:
    registry = CollectorRegistry()
    numbers = Numbers(registry)
    person = await prepare(simulation, registry)
    assert numbers("s_finished_total", result="succeeded", reason="") == 0
    for reason in reasons.MIGRATION_FAILURES:
        assert numbers("s_finished_total", result="failed", reason=reason) == 0, reason
    assert (numbers.on_their_way(), numbers("s_waiting")) == ({}, 0)

    await scenario.migrate("moved", "vm-1")(person)
    over = await status(person, "moved", "Succeeded")
    assert numbers.finished() == {("succeeded", ""): 1}
    took = (over.end_timestamp - over.start_timestamp).total_seconds()
    counted = numbers("_duration_seconds_sum", result="succeeded", policy="")
    assert counted is not None and abs(counted - took) <= 1.0, "by the clock, which stands in the status in whole seconds"
    assert numbers("_transferred_bytes_total") == over.progress.transferred_bytes > 0
    assert numbers("_downtime_seconds_count") == 1
    assert (numbers("_downtime_seconds_sum") or 0) * 1000 == over.progress.downtime_ms

    nowhere = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["nowhere"]}]}
    await scenario.migrate("lost", "vm-1", addedNodeSelectorTerm=nowhere)(person)
    await status(person, "lost", "Failed")
    assert numbers.finished() == {("succeeded", ""): 1, ("failed", reasons.NODE_NOT_FOUND): 1}
    assert numbers("_duration_seconds_count", result="failed", policy="") is None, "its turn never came"

    await person.create(POLICIES, {"metadata": {"name": "slow"}, "spec": SLOW})
    await scenario.migrate("slow", "vm-1")(person)
    await status(person, "slow", "Running")
    await scenario.migrate("waits", "vm-2")(person)
    await status(person, "waits", "Pending")
    assert (numbers.on_their_way(), numbers("s_waiting")) == ({"Running": 1, "Pending": 1}, 1)
    await asyncio.sleep(9.0)
    # The one that waits first, lest its turn comes.
    await cancelled(person, "waits")
    await cancelled(person, "slow")
    assert numbers.finished()["failed", reasons.CANCELLED] == 2
    assert numbers("_duration_seconds_count", result="failed", policy="slow") == 1
    assert (numbers("_duration_seconds_sum", result="failed", policy="slow") or 0) >= 10
    assert numbers("_downtime_seconds_count") == 1, "nobody stood still for a move that did not come to be"
    assert (numbers.on_their_way(), numbers("s_waiting")) == ({}, 0)
    assert not simulation.trace.errors()


@pytest.mark.slow
def test_every_outcome_is_counted_from_zero_and_nobody_stays_on_the_way(seed: int) -> None:
    simulate(seed, story, scenario.MOVED.kinds)


@pytest.mark.slow
def test_who_leads_no_more_counts_nobody(seed: int) -> None:
    async def main(simulation: Simulation) -> None:
        registry = CollectorRegistry()
        numbers = Numbers(registry)
        person = await prepare(simulation, registry)
        await person.create(POLICIES, {"metadata": {"name": "slow"}, "spec": SLOW})
        await scenario.migrate("slow", "vm-1")(person)
        await status(person, "slow", "Running")
        assert numbers.on_their_way() == {"Running": 1}
        simulation.machines[CONTROLLERS].crash("its term is over", 30.0)
        await asyncio.sleep(1.0)
        assert numbers.on_their_way() == {}
        await asyncio.sleep(60.0)
        assert numbers.on_their_way() == {"Running": 1}, "it leads again"

    simulate(seed, main, scenario.MOVED.kinds)


@pytest.mark.slow
def test_an_end_is_counted_once_although_no_answer_came_to_who_wrote_it(seed: int) -> None:
    async def main(simulation: Simulation) -> None:
        registry = CollectorRegistry()
        person = await prepare(simulation, registry)
        AnswersLost(CONTROLLERS, 1.0, random.Random(seed)).install(simulation)
        await scenario.migrate("moved", "vm-1")(person)
        await status(person, "moved", "Succeeded")
        assert Numbers(registry).finished() == {("succeeded", ""): 1}

    simulate(seed, main, scenario.MOVED.kinds)
