"""Days full of trouble: people, faults and dying machines, all chosen by a seed. Whatever happens, no guest runs twice, and in the
end everything is as people wanted it."""

from __future__ import annotations

import asyncio
import contextlib
import random

import msgspec

from herder.kube.client import Client
from herder.kube.errors import KubeError
from herder.kube.resources import INSTANCES, NODES, Key
from tests.simulation.cluster import CONTROLLERS, controllers
from tests.simulation.faults import ON_WRITES, Fault, Killed, OnWrite
from tests.simulation.herd import scenario
from tests.simulation.herd.ledger import Ledger, noted_node
from tests.simulation.matrix import Step
from tests.simulation.outcome import stored_objects
from tests.simulation.simulation import Simulation, simulate

MACHINES = ("vm-a", "vm-b", "vm-c")
NODE_NAMES = ("node-1", "node-2", "node-3")
LASTS = 300.0
# Longer than the longest wait after failures, and whatever is still to come back.
CALM = 600.0
ROLES = (CONTROLLERS, "nodes")
MOST_WRITES = 80


class Weathered(msgspec.Struct, frozen=True):
    wrong: list[str]
    guests_started: int
    trace: list[str]


def faults_of(seed: int) -> list[Fault]:
    dice = random.Random(f"{seed}/herd/faults")
    chosen: list[type[OnWrite]] = dice.choices(ON_WRITES, k=dice.randint(4, 10))
    faults: list[Fault] = [kind(dice.choice(ROLES), dice.randint(1, MOST_WRITES)) for kind in chosen]
    victims = ("controllers-a", "controllers-b", "api", *NODE_NAMES)
    for machine in dice.choices(victims, k=dice.randint(1, 6)):
        faults.append(Killed(machine, round(dice.uniform(1.0, LASTS), 3), back_after=round(dice.uniform(0.5, 90.0), 3)))
    return faults


def weather(seed: int, *, traced: bool = False) -> Weathered:
    async def main(simulation: Simulation) -> Weathered:
        for fault in faults_of(seed):
            fault.install(simulation)
        ledger = Ledger(simulation)
        await simulation.started()
        processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", scenario.ALL[0].controllers) for letter in "ab"]
        await simulation.started(*processes, *(noted_node(simulation, name, ledger) for name in NODE_NAMES))
        wanted = await _people(simulation, ledger, random.Random(f"{seed}/herd/people"))
        await asyncio.sleep(CALM)
        wrong = [*ledger.wrong, *_unlike(stored_objects(simulation.server), wanted), *simulation.trace.errors()]
        return Weathered(wrong, ledger.started, simulation.trace.lines)

    return simulate(seed, main, scenario.ALL[0].kinds, traced=traced)


async def _people(simulation: Simulation, ledger: Ledger, dice: random.Random) -> dict[str, str]:
    """What they do until the storm is over, and how they want each machine to be in the end."""
    person = simulation.client()
    for name in MACHINES:
        await attempt(person, scenario.make("Always", name, simulated={"boot": "2s", "shutdown": "1s"}))
    while simulation.loop.time() < LASTS:
        await asyncio.sleep(dice.uniform(0.5, 25.0))
        name = dice.choice(MACHINES)
        doing = dice.choice(("halt", "run", "restart", "pause", "unpause", "pod", "instance", "fence", "delete node"))
        simulation.trace.add("person", f"{doing} {name}")
        if doing == "fence":
            await _fence(simulation, ledger, person, dice.choice(NODE_NAMES))
        elif doing == "delete node":
            # Its agent may live: then it ends its guests first.
            await attempt(person, _delete_node(dice.choice(NODE_NAMES)), once=True)
        else:
            await attempt(person, _STEPS[doing](name), once=True)
    wanted = {name: dice.choice(("Always", "Halted")) for name in MACHINES}
    for name, strategy in wanted.items():
        await attempt(person, scenario.change(strategy, name))
        await attempt(person, scenario.pause("false", name), once=True)
    return wanted


async def _fence(simulation: Simulation, ledger: Ledger, person: Client, name: str) -> None:
    """As one should: off first, and only then the Node is taken away. Later it is back, and knows nothing."""
    machine = simulation.machines[name]
    machine.restarts = False
    machine.crash("fenced")
    ledger.forget(name)

    await attempt(person, _delete_node(name))
    await asyncio.sleep(20.0)
    machine.restarts = True
    machine.start()


def _delete_node(name: str) -> Step:
    async def step(client: Client) -> None:
        await client.delete(NODES, Key("", name))

    return step


async def _delete_instance(client: Client, name: str) -> None:
    await client.delete(INSTANCES, Key(scenario.NAMESPACE, name))


_STEPS = {
    "halt": lambda name: scenario.change("Halted", name),
    "run": lambda name: scenario.change("Always", name),
    "restart": scenario.restart,
    "pause": lambda name: scenario.pause("true", name),
    "unpause": lambda name: scenario.pause("false", name),
    "pod": scenario.delete_pod,
    "instance": lambda name: lambda client: _delete_instance(client, name),
}


async def attempt(person: Client, step: Step, *, once: bool = False) -> None:
    """People are patient with a server that is away; what is not there cannot be restarted or paused, and they leave it at that."""
    while True:
        with contextlib.suppress(KubeError, AssertionError):
            await person.wait_until_ready()
            await step(person)
            return
        if once:
            return
        await asyncio.sleep(1.0)


def _unlike(left: dict[str, bytes], wanted: dict[str, str]) -> list[str]:
    found: list[str] = []
    for name, strategy in wanted.items():
        pods = [key for key in left if key.startswith(f"pods {scenario.NAMESPACE}/virt-launcher-{name}-")]
        status = msgspec.json.decode(left[f"virtualmachines.kubevirt.io {scenario.NAMESPACE}/{name}"]).get("status", {})
        right = ("Running", 1) if strategy == "Always" else ("Stopped", 0)
        if (status.get("printableStatus"), len(pods)) != right:
            found.append(f"{name} should be {right}, but is {status} with {pods}")
    return found
