"""Days on which machines are suspended, resumed, stopped and restarted while everything fails. Whatever happens, no guest runs
twice or backwards, no memory is used twice, and in the end everything is as people wanted it."""

from __future__ import annotations

import asyncio
import random

import msgspec

from herder.kube.resources import NODES, Key
from tests.simulation.cluster import CONTROLLERS, controllers
from tests.simulation.herd import scenario
from tests.simulation.herd.storms import CALM, LASTS, NODE_NAMES, attempt, faults_of
from tests.simulation.machine import Machine
from tests.simulation.outcome import stored_objects
from tests.simulation.simulation import Simulation, simulate
from tests.simulation.suspension.ledger import MemoryLedger, remembering_node
from tests.simulation.suspension.scenario import SLOW, TWICE, resume, suspend

MACHINES = ("vm-a", "vm-b")
DOINGS = ("suspend", "suspend", "suspend", "resume", "resume", "resume", "restart", "pod", "halt", "run", "fence")


class Weathered(msgspec.Struct, frozen=True):
    wrong: list[str]
    boots: int
    resumed: int
    trace: list[str]


def weather(seed: int, *, traced: bool = False) -> Weathered:
    async def main(simulation: Simulation) -> Weathered:
        for fault in faults_of(seed):
            fault.install(simulation)
        ledger = MemoryLedger(simulation)
        await simulation.started()
        processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", TWICE.controllers) for letter in "ab"]
        nodes = {name: remembering_node(simulation, name, ledger) for name in NODE_NAMES}
        await simulation.started(*processes, *nodes.values())
        wanted = await _people(simulation, ledger, nodes, random.Random(f"{seed}/suspension/people"))
        await asyncio.sleep(CALM)
        wrong = [*ledger.wrong, *_unlike(stored_objects(simulation.server), wanted), *simulation.trace.errors()]
        return Weathered(wrong, ledger.boots.total(), ledger.resumed.total(), simulation.trace.lines)

    return simulate(seed, main, TWICE.kinds, traced=traced)


async def _people(simulation: Simulation, ledger: MemoryLedger, nodes: dict[str, Machine], dice: random.Random) -> dict[str, str]:
    """What they do until the storm is over, and how they want each machine to be in the end."""
    person = simulation.client()
    for name in MACHINES:
        await attempt(person, scenario.make("Always", name, simulated=SLOW))
    while simulation.loop.time() < LASTS:
        await asyncio.sleep(dice.uniform(0.5, 15.0))
        name, doing = dice.choice(MACHINES), dice.choice(DOINGS)
        simulation.trace.add("person", f"{doing} {name}")
        if doing == "fence":
            await _fence(simulation, ledger, nodes[dice.choice(NODE_NAMES)])
        else:
            steps = {
                "suspend": suspend(name),
                "resume": resume(name),
                "restart": scenario.restart(name),
                "pod": scenario.delete_pod(name),
                "halt": scenario.change("Halted", name),
                "run": scenario.change("Always", name),
            }
            await attempt(person, steps[doing], once=True)
    wanted = {name: dice.choice(("Running", "Suspended")) for name in MACHINES}
    for name, word in wanted.items():
        await attempt(person, scenario.change("Always", name))
        await attempt(person, suspend(name, wanted=word == "Suspended"))
    return wanted


async def _fence(simulation: Simulation, ledger: MemoryLedger, machine: Machine) -> None:
    """As one should: off first, and only then the Node is taken away. Later it is back, and knows nothing."""
    machine.restarts = False
    machine.crash("fenced")
    ledger.forget(machine.name)
    await attempt(simulation.client(), lambda client: client.delete(NODES, Key("", machine.name)))
    await asyncio.sleep(20.0)
    machine.restarts = True
    machine.start()


def _unlike(left: dict[str, bytes], wanted: dict[str, str]) -> list[str]:
    found: list[str] = []
    for name, word in wanted.items():
        pods = [key for key in left if key.startswith(f"pods {scenario.NAMESPACE}/virt-launcher-{name}-")]
        status = msgspec.json.decode(left[f"virtualmachines.kubevirt.io {scenario.NAMESPACE}/{name}"]).get("status", {})
        if (status.get("printableStatus"), len(pods)) != (word, int(word == "Running")):
            found.append(f"{name} should be {word}, but is {status} with {pods}")
    return found
