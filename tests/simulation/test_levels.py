"""Levels under faults and in virtual time: always right in the end, and never written for nothing."""

from __future__ import annotations

import asyncio

import msgspec

from herder.api import labels
from herder.api.core import Node
from herder.api.registry import SETTINGS
from herder.controllers.migratability import LONGEST, QUIET, Migratability
from herder.kube.client import Client
from herder.kube.resources import NODES, Key
from herder.kube.resources import SETTINGS as KUBEVIRTS
from tests.simulation.cluster import CONTROLLERS, controllers
from tests.simulation.faults import CUT_OFF
from tests.simulation.herd.scenario import herd, make, runs
from tests.simulation.matrix import Scenario, Step, matrix_for
from tests.simulation.outcome import stored_objects
from tests.simulation.simulation import Simulation, simulate
from tests.unit.rules.migratability.nodes import Labels, cpu, plainly_counted

PLAIN, ODD = cpu("Skylake", ["aes"]), cpu("Skylake", ["aes", "avx512f"])
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def join(name: str, written: Labels) -> Step:
    async def step(client: Client) -> None:
        metadata = {"name": name, "labels": written}
        await client.create(NODES, {"metadata": metadata, "status": READY})

    return step


def change(name: str, **patch: object) -> Step:
    async def step(client: Client) -> None:
        await client.patch(NODES, Key("", name), patch)

    return step


def leave(name: str) -> Step:
    async def step(client: Client) -> None:
        await client.delete(NODES, Key("", name))

    return step


def nodes_in(left: dict[str, bytes]) -> list[Node]:
    return [msgspec.json.decode(raw, type=Node) for key, raw in left.items() if key.startswith("nodes ")]


def all_right(left: dict[str, bytes]) -> str:
    """As the seed counts them; nothing where they are all so."""
    nodes = nodes_in(left)
    wanted = {name: str(level) for name, level in plainly_counted(nodes).items()}
    found = {one.name: one.labels[labels.MIGRATABILITY_LEVEL] for one in nodes if labels.MIGRATABILITY_LEVEL in one.labels}
    return "" if found == wanted else f"levels should be {wanted}, but are {found}"


CHANGING = Scenario(
    "nodes of a mixed cluster come, change and go",
    kinds=(SETTINGS,),
    controllers=(Migratability.start,),
    steps=(
        join("a", PLAIN),
        join("b", PLAIN),
        join("odd", ODD),
        change("b", spec={"unschedulable": True}),
        change("a", metadata={"labels": {labels.CPU_FEATURE + "avx512f": "true"}}),
        leave("b"),
    ),
    expect=all_right,
    quiet=CUT_OFF + 15,
)
test_levels_survive_every_fault_at_every_write = matrix_for(CHANGING)


def require(level: int) -> Step:
    async def step(client: Client) -> None:
        migrations = {"requireHostModelMigratabilityLevel": level}
        await client.apply(KUBEVIRTS, Key("kubevirt", "kubevirt"), {"spec": {"configuration": {"migrations": migrations}}})

    return step


async def require_nothing(client: Client) -> None:
    await client.apply(KUBEVIRTS, Key("kubevirt", "kubevirt"), {"spec": {}})


# Two equal nodes have level 50: with 60 the machine waits, and without it starts, in a pod that is made anew.
WAITING = herd("a machine waits for a level that is given up", require(60), make(), require_nothing, expect=runs)
test_a_machine_that_waited_for_a_level_survives_the_faults_of_controllers = matrix_for(WAITING, every=8)


async def _cluster(simulation: Simulation, count: int) -> Client:
    processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", (Migratability.start,)) for letter in "ab"]
    await simulation.started(*processes)
    person = simulation.client()
    for number in range(count):
        await join(f"n{number}", ODD if number == 0 else PLAIN)(person)
    return person


def _label_writes(simulation: Simulation) -> int:
    return sum("/nodes/" in write for write in simulation.wire(CONTROLLERS).writes)


def test_controllers_that_start_anew_rewrite_nothing(seed: int) -> None:
    async def main(simulation: Simulation) -> None:
        await _cluster(simulation, 5)
        await simulation.at_rest()
        before = _label_writes(simulation)
        assert before >= 5
        for name in ("a", "b"):
            simulation.machines[f"{CONTROLLERS}-{name}"].crash("restarted")
        await asyncio.sleep(300.0)
        assert all_right(stored_objects(simulation.server)) == ""
        assert _label_writes(simulation) == before

    simulate(seed, main, (SETTINGS,))


def test_nodes_that_join_for_a_minute_are_written_twice_each_at_most(seed: int) -> None:
    async def main(simulation: Simulation) -> None:
        person = await _cluster(simulation, 0)
        await asyncio.sleep(30.0)
        count = 120
        for number in range(count):
            await join(f"n{number}", (PLAIN, ODD)[number * 7 % 10 < 3])(person)
            await asyncio.sleep(LONGEST * 0.9 / count)
        await simulation.at_rest()
        assert all_right(stored_objects(simulation.server)) == ""
        assert _label_writes(simulation) <= 2 * count

    simulate(seed, main, (SETTINGS,))


def test_a_node_gets_its_first_level_while_others_still_join_and_loses_it_as_soon_as_it_is_cordoned(seed: int) -> None:
    async def main(simulation: Simulation) -> None:
        person = await _cluster(simulation, 3)
        await asyncio.sleep(60.0)
        for number in range(20):
            await join(f"late{number}", PLAIN)(person)
            await asyncio.sleep(QUIET * 0.9)
        found = {one.name: labels.MIGRATABILITY_LEVEL in one.labels for one in nodes_in(stored_objects(simulation.server))}
        assert all(has for name, has in found.items() if name != "late19")
        await change("n1", spec={"unschedulable": True})(person)
        await asyncio.sleep(QUIET * 0.9)
        (cordoned,) = [one for one in nodes_in(stored_objects(simulation.server)) if one.name == "n1"]
        assert labels.MIGRATABILITY_LEVEL not in cordoned.labels

    simulate(seed, main, (SETTINGS,))
