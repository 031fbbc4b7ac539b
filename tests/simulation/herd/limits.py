"""Hundreds of migrations in random order, while leaders die, answers are lost and the limits are changed: counted at every change
that is stored."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import msgspec

from herder.api.kinds import VirtualMachineInstanceMigration
from herder.api.registry import MIGRATION
from herder.api.registry import SETTINGS as SETTINGS_KIND
from herder.kube.client import Client
from herder.kube.errors import AlreadyExists, Invalid, KubeError
from herder.kube.resources import INSTANCES, MIGRATIONS, SETTINGS, Key
from herder.rules.migration import COMING_IN, FINISHED, UNDER_WAY, Limits, phase_of
from herder.rules.migration.phases import source_of, target_of
from herder.server.store import Change
from tests.engines.waiting import eventually
from tests.simulation.cluster import CONTROLLERS, controllers, node
from tests.simulation.faults import AnswersLost, Killed
from tests.simulation.herd import scenario
from tests.simulation.simulation import Simulation, simulate

NODES = 6
GUESTS = 24
MOVES = 220
LIMITS = Limits(cluster=6, outbound=2, inbound=2)
# Lowered and raised, together and one by one, while migrations wait and are under way.
CHANGED = (
    Limits(cluster=2, outbound=1, inbound=1),
    Limits(cluster=9, outbound=3, inbound=3),
    Limits(cluster=9, outbound=1, inbound=3),
    Limits(cluster=9, outbound=3, inbound=1),
    Limits(cluster=3, outbound=3, inbound=3),
    LIMITS,
)
# A decision that was made just before they were lowered is on its way for no longer than this.
JUST_NOW = 1.0
LOST = 0.05
PATIENCE = 3600.0
FIELDS = ("parallelMigrationsPerCluster", "parallelOutboundMigrationsPerNode", "parallelInboundMigrationsPerNode")
PRIORITIES = ("system-critical", "user-triggered", "system-maintenance", None)


class Crowded(msgspec.Struct, frozen=True):
    wrong: list[str]
    finished: int
    leaders: int
    most: Limits
    # How often more were under way than was allowed just then, because the limit had been lowered.
    above: int


class Counting:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._there: dict[str, VirtualMachineInstanceMigration] = {}
        self._limits: list[tuple[float, Limits]] = []
        self._counted: set[tuple[str, str]] = set()
        self.wrong: list[str] = []
        self.finished: set[str] = set()
        self.most = Counter[str]()
        self.above = 0
        simulation.server.listeners.append(self._stored)

    def _stored(self, change: Change) -> None:
        if change.table == SETTINGS_KIND.crd_name and (limits := _limits_of(change.record.raw)) is not None:
            self._limits.append((self._simulation.loop.time(), limits))
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
        coming = [one for one in under_way if phase_of(one) in COMING_IN]
        allowed, now = self._allowed(), self._limits[-1][1] if self._limits else LIMITS
        counts = {
            "cluster": (Counter({"": len(under_way)}), allowed.cluster, [("", one) for one in under_way]),
            "outbound": _by_node([(source_of(one), one) for one in under_way], allowed.outbound),
            "inbound": _by_node([(target_of(one), one) for one in coming], allowed.inbound),
        }
        for name, (count, limit, placed) in counts.items():
            self.most[name] = max(self.most[name], *count.values(), 0)
            for where, one in placed:
                self._began(name, one.uid, where, count[where], limit)
        self.above += len(under_way) > now.cluster
        self._counted &= {(name, one.uid) for name, (_, _, placed) in counts.items() for _, one in placed}

    def _began(self, name: str, uid: str, where: str, count: int, limit: int) -> None:
        """Who is counted for the first time has begun just now: those before it may be more than are allowed by now."""
        if (name, uid) in self._counted:
            return
        self._counted.add((name, uid))
        if count > limit:
            self.wrong.append(f"{self._simulation.loop.time():.3f}: {name} {where} is {count}, and may be {limit}")

    def _allowed(self) -> Limits:
        """The highest that were in force in this moment, or just before."""
        since = self._simulation.loop.time() - JUST_NOW
        last = max((number for number, (at, _) in enumerate(self._limits) if at <= since), default=0)
        recent = [limits for _, limits in self._limits[last:]] or [LIMITS]
        return Limits(*(max(getattr(one, name) for one in recent) for name in Limits.__struct_fields__))


def _by_node(
    placed: list[tuple[str, VirtualMachineInstanceMigration]], limit: int
) -> tuple[Counter[str], int, list[tuple[str, VirtualMachineInstanceMigration]]]:
    return Counter(node for node, _ in placed), limit, placed


def _limits_of(raw: bytes) -> Limits | None:
    """None of those that are there from the start: they say nothing."""
    spec = msgspec.json.decode(raw)["spec"]
    return Limits(*(spec["configuration"]["migrations"][name] for name in FIELDS)) if spec else None


def crowd(seed: int) -> Crowded:
    async def main(simulation: Simulation) -> Crowded:
        dice = random.Random(f"{seed}/limits")
        counting = Counting(simulation)
        AnswersLost(CONTROLLERS, LOST, random.Random(f"{seed}/answers")).install(simulation)
        for time in range(40, 400, 45):
            Killed(f"controllers-{dice.choice('ab')}", time + dice.uniform(0, 20), back_after=dice.uniform(0.5, 20)).install(
                simulation
            )
        await simulation.started()
        processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", scenario.MOVED.controllers) for letter in "ab"]
        await simulation.started(*processes, *(node(simulation, f"node-{number + 1}") for number in range(NODES)))
        person = simulation.client()
        await _prepare(person)
        await asyncio.gather(_move_about(person, dice), _change_limits(person, random.Random(f"{seed}/changed")))
        await eventually(lambda: _are_finished(counting), patience=PATIENCE)
        most = Limits(counting.most["cluster"], counting.most["outbound"], counting.most["inbound"])
        lives = sum(process.lives for process in processes)
        return Crowded([*counting.wrong, *simulation.trace.errors()], len(counting.finished), lives, most, counting.above)

    return simulate(seed, main, scenario.MOVED.kinds, traced=False)


async def _are_finished(counting: Counting) -> bool:
    return len(counting.finished) >= MOVES


async def _change_limits(person: Client, dice: random.Random) -> None:
    for limits in CHANGED:
        await asyncio.sleep(dice.uniform(10.0, 40.0))
        await person.patch(SETTINGS, Key("kubevirt", "kubevirt"), {"spec": {"configuration": {"migrations": _written(limits)}}})


def _written(limits: Limits) -> dict[str, int]:
    return dict(zip(FIELDS, (limits.cluster, limits.outbound, limits.inbound), strict=True))


async def _prepare(person: Client) -> None:
    migrations = {
        **_written(LIMITS),
        # Long enough that they are in each other's way.
        "bandwidthPerMigration": "16Mi",
    }
    await person.apply(SETTINGS, Key("kubevirt", "kubevirt"), {"spec": {"configuration": {"migrations": migrations}}})
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
