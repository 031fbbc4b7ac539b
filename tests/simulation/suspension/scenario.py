"""What a person does with a machine that is suspended, and what has to come of it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import msgspec

from herder.kube.client import Client
from herder.kube.resources import EVENTS, MACHINES, Key
from tests.simulation.cluster import CONTROLLERS, controllers
from tests.simulation.faults import CUT_OFF, Fault
from tests.simulation.herd.scenario import NAMESPACE, herd, make, runs
from tests.simulation.loop import Stuck
from tests.simulation.machine import Machine
from tests.simulation.matrix import Scenario, Step
from tests.simulation.outcome import stored_objects
from tests.simulation.simulation import Simulation, Wedged, simulate
from tests.simulation.suspension.ledger import MemoryLedger, remembering_node

# Four seconds until its memory is saved.
SLOW = {"boot": "1s", "shutdown": "1s", "save-bandwidth": "16Mi"}
# Whoever boots although its memory was saved, or was to be, says why.
SAID = ("NotResumed", "MemoryDropped")
NAME = "vm"
QUIET = CUT_OFF + 15
_ledgers: weakref.WeakKeyDictionary[Simulation, MemoryLedger] = weakref.WeakKeyDictionary()


def ledger_of(simulation: Simulation) -> MemoryLedger:
    if (known := _ledgers.get(simulation)) is None:
        known = _ledgers[simulation] = MemoryLedger(simulation)
    return known


def node_with_ledger(simulation: Simulation, name: str) -> Machine:
    return remembering_node(simulation, name, ledger_of(simulation))


def suspend(name: str = NAME, *, wanted: bool = True) -> Step:
    async def step(client: Client) -> None:
        await client.patch(MACHINES, Key(NAMESPACE, name), {"spec": {"suspended": wanted or None}})

    return step


def resume(name: str = NAME) -> Step:
    return suspend(name, wanted=False)


def sleeps(left: dict[str, bytes], name: str = NAME) -> str:
    """Nothing where it is suspended, with its memory, and without anything on any node."""
    status = msgspec.json.decode(left[f"virtualmachines.kubevirt.io {NAMESPACE}/{name}"]).get("status", {})
    pods = [key for key in left if key.startswith(f"pods {NAMESPACE}/")]
    said = [(one["status"], one["reason"]) for one in status.get("conditions", ()) if one["type"] == "Suspended"]
    right = status.get("printableStatus") == "Suspended" and said == [("True", "MemorySaved")] and not pods
    return "" if right else f"{name} should be suspended, but is {status} with {pods}"


def suspending(name: str, *steps: Step, expect: Any = runs) -> Scenario:
    made = herd(name, make("Always", simulated=SLOW), *steps, expect=expect)
    watch = lambda simulation: ledger_of(simulation).wrong  # noqa: E731
    return msgspec.structs.replace(made, node=node_with_ledger, watch=watch, tried=TRIED, prepared=PREPARED)


# Until it runs for the first time.
PREPARED = 2
# One that was interrupted is saved once more.
TRIED = frozenset({f"pods {NAMESPACE}/save-<uid>-{attempt}" for attempt in range(4)})
TWICE = suspending("suspended and resumed twice", suspend(), resume(), suspend(), resume())
ASLEEP = suspending("suspended, resumed and suspended", suspend(), resume(), suspend(), expect=sleeps)


class Suffered(msgspec.Struct, frozen=True):
    wrong: list[str]
    writes: list[str]
    # Of those the ones that only prepared it.
    prepared: int
    # After it was prepared.
    boots: int
    resumed: int


def suffer(scenario: Scenario, seed: int, faults: Sequence[Fault], role: str) -> Suffered:
    """What no fault may lead to, wherever it happens. It may cost the memory: then the guest boots, and somebody says why."""

    async def main(simulation: Simulation) -> Suffered:
        ledger = ledger_of(simulation)
        for fault in faults:
            fault.install(simulation)
        await simulation.started()
        processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", scenario.controllers) for letter in "ab"]
        await simulation.started(
            *processes, *(node_with_ledger(simulation, f"node-{number + 1}") for number in range(scenario.nodes))
        )
        person, wire = simulation.client(), simulation.wire(role)
        await _do(simulation, person, scenario.steps[:PREPARED])
        prepared, before = len(wire.writes), ledger.boots[NAME]
        await _do(simulation, person, scenario.steps[PREPARED:])
        boots, left = ledger.boots[NAME] - before, stored_objects(simulation.server)
        said = {one.reason for one in (await person.list(EVENTS)).items}
        unsaid = "it booted once more, and nobody says why" if boots and not said & {*SAID} else ""
        wrong = [*ledger.wrong, scenario.expect(left), unsaid, *simulation.trace.errors()]
        return Suffered([one for one in wrong if one], list(wire.writes), prepared, boots, ledger.resumed[NAME])

    try:
        return simulate(seed, main, scenario.kinds, traced=False)
    except (Wedged, Stuck) as error:
        return Suffered([str(error)], [], 0, 0, 0)


async def _do(simulation: Simulation, person: Client, steps: Sequence[Step]) -> None:
    for step in steps:
        await person.wait_until_ready()
        await step(person)
        await simulation.at_rest(QUIET)
    await person.wait_until_ready()
