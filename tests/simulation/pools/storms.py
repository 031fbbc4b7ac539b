"""Days full of trouble for pools: good and bad templates, scaling, detaching, lost answers, leaders and servers that die. Whatever
happens, what must never happen does not, and in the end there is what people wanted."""

from __future__ import annotations

import asyncio
import contextlib
import random

import msgspec

from herder.kube.client import Client
from herder.kube.errors import KubeError
from herder.kube.resources import MACHINES, POOLS, Key
from tests.simulation import faults
from tests.simulation.cluster import CONTROLLERS, controllers, node
from tests.simulation.faults import AnswersLost, Fault, Killed, OnWrite
from tests.simulation.herd.scenario import NAMESPACE, nodes_are_ready
from tests.simulation.matrix import Step
from tests.simulation.outcome import stored_objects
from tests.simulation.pools import scenario
from tests.simulation.pools.changes import behaving
from tests.simulation.pools.ledger import Ledger
from tests.simulation.pools.scenario import KEY, OFFLINE, attach, detach, patch, template
from tests.simulation.simulation import Simulation, simulate

LASTS = 400.0
# Longer than the longest waits after failures together.
CALM = 1500.0
REPLICAS = 4
KEPT = Key(NAMESPACE, "kept")
# Those after which everybody soon knows how things are: who knows it late can only act by what he knows.
SUDDEN: tuple[type[OnWrite], ...] = (
    *(faults.CrashBefore, faults.CrashAfter, faults.Refused, faults.AnswerLost, faults.Conflicted, faults.Throttled),
    *(faults.ServerFailed, faults.ServerRestartBefore, faults.ServerRestartAfter, faults.WatchDoubled),
)


class Weathered(msgspec.Struct, frozen=True):
    wrong: list[str]
    restarts: int
    trace: list[str]


def faults_of(seed: int) -> list[Fault]:
    dice = random.Random(f"{seed}/pools/faults")
    chosen: list[Fault] = [kind(CONTROLLERS, dice.randint(1, 120)) for kind in dice.choices(SUDDEN, k=dice.randint(3, 8))]
    for machine in dice.choices(("controllers-a", "controllers-b", "api"), k=dice.randint(1, 4)):
        chosen.append(Killed(machine, round(dice.uniform(1.0, LASTS), 3), back_after=round(dice.uniform(0.5, 30.0), 3)))
    return [*chosen, AnswersLost(CONTROLLERS, 0.02, random.Random(f"{seed}/pools/answers"))]


def weather(seed: int, *, traced: bool = False) -> Weathered:
    async def main(simulation: Simulation) -> Weathered:
        ledger = Ledger(simulation)
        await simulation.started()
        processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", scenario.ROLLED.controllers) for letter in "ab"]
        await simulation.started(*processes, *(node(simulation, f"node-{number}") for number in (1, 2)))
        await nodes_are_ready(simulation.client())
        for fault in faults_of(seed):
            fault.install(simulation)
        await _people(simulation, random.Random(f"{seed}/pools/people"))
        await asyncio.sleep(CALM)
        wrong = [*ledger.wrong, *_unlike(stored_objects(simulation.server)), *simulation.trace.errors()]
        return Weathered(wrong, ledger.restarts, simulation.trace.lines)

    return simulate(seed, main, scenario.ROLLED.kinds, traced=traced)


async def _people(simulation: Simulation, dice: random.Random) -> None:
    person = simulation.client()
    await attempt(person, scenario.make(REPLICAS, template(), autohealing={}, progressDeadlineSeconds=60))
    await attempt(person, _make_kept)
    detached: list[str] = []
    while simulation.loop.time() < LASTS:
        await asyncio.sleep(dice.uniform(1.0, 40.0))
        doing = dice.choice(("good", "good", "bad", "scale", "kept", "kept", "detach", "attach"))
        simulation.trace.add("person", doing)
        name = f"{KEY.name}-{dice.randint(1, REPLICAS)}"
        if doing == "detach" and not detached:
            detached.append(name)
            await attempt(person, detach(name))
        elif doing == "attach" and detached:
            await attempt(person, attach(detached.pop()))
        elif doing in ("good", "bad"):
            await attempt(person, patch(template=_changed(dice, bad=doing == "bad")))
        elif doing == "scale":
            await attempt(person, patch(replicas=dice.randint(1, REPLICAS)))
        elif doing == "kept":
            await attempt(person, _scale_kept(dice.randint(0, 2)))
    for name in detached:
        await attempt(person, delete(name))
    await attempt(person, patch(replicas=REPLICAS, template=behaving("160Mi")))
    await attempt(person, _scale_kept(2))


def _changed(dice: random.Random, *, bad: bool) -> scenario.Json:
    return behaving(f"{dice.randint(64, 128)}Mi", "start" if bad else None)


async def _make_kept(client: Client) -> None:
    wanted = scenario.pool(2, template(strategy="Halted", disk=True), **OFFLINE)
    await client.create(POOLS, {**wanted, "metadata": {"name": KEPT.name, "namespace": KEPT.namespace}})


def _scale_kept(replicas: int) -> Step:
    async def step(client: Client) -> None:
        await client.patch(POOLS, KEPT, {"spec": {"replicas": replicas}})

    return step


def delete(name: str) -> Step:
    async def step(client: Client) -> None:
        await client.delete(MACHINES, Key(NAMESPACE, name))

    return step


async def attempt(person: Client, step: Step) -> None:
    """People are patient with a server that is away; what is not there cannot be detached, and they leave it at that."""
    for _ in range(20):
        with contextlib.suppress(KubeError):
            await person.wait_until_ready()
            await step(person)
            return
        await asyncio.sleep(2.0)


def _unlike(left: dict[str, bytes]) -> list[str]:
    machines = scenario.objects(left, "virtualmachines")
    wanted = [f"{KEY.name}-{number}" for number in range(1, REPLICAS + 1)]
    ours = sorted(name for name in machines if name.startswith(KEY.name))
    words = {name: machines[name].get("status", {}).get("printableStatus") for name in ours}
    old = [name for name in ours if machines[name]["spec"]["template"]["spec"]["domain"]["memory"]["guest"] != "160Mi"]
    kept = sorted(name for name in machines if name.startswith(KEPT.name))
    disks = sorted(scenario.objects(left, "datavolumes"))
    found: list[str] = []
    if len(ours) != len(wanted) or set(words.values()) != {"Running"} or old:
        found.append(f"there should be {len(wanted)} that run, but there are {words}, and {old} are old")
    if kept != [f"{KEPT.name}-{number}" for number in (1, 2)] or disks != ["disk-1", "disk-2"]:
        found.append(f"there should be two that are kept, with their disks, but there are {kept} and {disks}")
    return found
