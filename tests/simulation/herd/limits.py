"""Hundreds of migrations in random order, while leaders die: counted at every change that is stored."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import msgspec

from herder.api.kinds import VirtualMachineInstanceMigration
from herder.api.registry import MIGRATION
from herder.kube.client import Client
from herder.kube.errors import AlreadyExists, Invalid, KubeError
from herder.kube.resources import INSTANCES, MIGRATIONS, SETTINGS, Key
from herder.rules.migration import COMING_IN, FINISHED, UNDER_WAY, Limits, phase_of
from herder.server.store import Change
from tests.simulation.cluster import CONTROLLERS, controllers, node
from tests.simulation.faults import Killed
from tests.simulation.herd import scenario
from tests.simulation.simulation import Simulation, simulate

NODES = 6
GUESTS = 24
MOVES = 220
LIMITS = Limits(cluster=6, outbound=2, inbound=2)
PRIORITIES = ("system-critical", "user-triggered", "system-maintenance", None)


class Crowded(msgspec.Struct, frozen=True):
    wrong: list[str]
    finished: int
    leaders: int
    most: Limits


class Counting:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._there: dict[str, VirtualMachineInstanceMigration] = {}
        self.wrong: list[str] = []
        self.finished: set[str] = set()
        self.most = Counter[str]()
        simulation.server.listeners.append(self._stored)

    def _stored(self, change: Change) -> None:
        if change.table != MIGRATION.crd_name:
            return
        migration = msgspec.json.decode(change.record.raw, type=VirtualMachineInstanceMigration)
        if change.kind == "DELETED":
            self._there.pop(migration.uid, None)
        else:
            self._there[migration.uid] = migration
        if phase_of(migration) in FINISHED:
            self.finished.add(migration.uid)
        self._count()

    def _count(self) -> None:
        under_way = [one for one in self._there.values() if phase_of(one) in UNDER_WAY]
        leaving = Counter(one.status.source_node or "" for one in under_way if one.status)
        coming = Counter(one.status.target_node or "" for one in under_way if one.status and phase_of(one) in COMING_IN)
        for name, count, limit in (
            ("cluster", len(under_way), LIMITS.cluster),
            ("outbound", max(leaving.values(), default=0), LIMITS.outbound),
            ("inbound", max(coming.values(), default=0), LIMITS.inbound),
        ):
            self.most[name] = max(self.most[name], count)
            if count > limit:
                self.wrong.append(f"{self._simulation.loop.time():.3f}: {name} is {count}, and may be {limit}")


def crowd(seed: int) -> Crowded:
    async def main(simulation: Simulation) -> Crowded:
        dice = random.Random(f"{seed}/limits")
        counting = Counting(simulation)
        for time in range(40, 400, 45):
            Killed(f"controllers-{dice.choice('ab')}", time + dice.uniform(0, 20), back_after=dice.uniform(0.5, 20)).install(
                simulation
            )
        await simulation.started()
        processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", scenario.MOVED.controllers) for letter in "ab"]
        await simulation.started(*processes, *(node(simulation, f"node-{number + 1}") for number in range(NODES)))
        person = simulation.client()
        await _prepare(person)
        await _move_about(person, dice)
        await asyncio.sleep(300.0)
        most = Limits(counting.most["cluster"], counting.most["outbound"], counting.most["inbound"])
        lives = sum(process.lives for process in processes)
        return Crowded([*counting.wrong, *simulation.trace.errors()], len(counting.finished), lives, most)

    return simulate(seed, main, scenario.MOVED.kinds, traced=False)


async def _prepare(person: Client) -> None:
    migrations = {
        "parallelMigrationsPerCluster": LIMITS.cluster,
        "parallelOutboundMigrationsPerNode": LIMITS.outbound,
        "parallelInboundMigrationsPerNode": LIMITS.inbound,
        # Long enough that they are in each other's way.
        "bandwidthPerMigration": "16Mi",
    }
    document = {"metadata": {"name": "kubevirt", "namespace": "kubevirt"}, "spec": {"configuration": {"migrations": migrations}}}
    await person.create(SETTINGS, document)
    for number in range(GUESTS):
        await scenario.make(name=f"vm-{number}")(person)
    for number in range(GUESTS):
        while not await runs(person, f"vm-{number}"):  # noqa: ASYNC110 - time is virtual
            await asyncio.sleep(1.0)


async def runs(person: Client, name: str) -> bool:
    try:
        found = await person.find(INSTANCES, Key(scenario.NAMESPACE, name))
    except KubeError:
        return False
    return found is not None and found.status is not None and found.status.phase == "Running"


async def _move_about(person: Client, dice: random.Random) -> None:
    made = 0
    while made < MOVES:
        name, priority = f"vm-{dice.randrange(GUESTS)}", dice.choice(PRIORITIES)
        spec = {"vmiName": name, **({"priority": priority} if priority else {})}
        try:
            await person.create(MIGRATIONS, {"metadata": {"name": f"move-{made}", "namespace": scenario.NAMESPACE}, "spec": spec})
            made += 1
        except (Invalid, AlreadyExists):
            pass  # it is being moved already
        except KubeError:
            await asyncio.sleep(1.0)
        await asyncio.sleep(dice.expovariate(2.0))
