"""Days on which the machines of a pool travel: nodes are drained and die, machines are moved, restarted by hand, detached, and fail
for reasons of their own, while templates change and leaders go. Beside them are machines that are no business of the pool."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec

from herder.api import defaults, labels
from herder.kube.client import Client, Selection
from herder.kube.resources import INSTANCES, MACHINES, NODES, Key
from tests.simulation.cluster import CONTROLLERS, controllers, node
from tests.simulation.faults import Killed
from tests.simulation.herd.scenario import NAMESPACE, make, migrate, nodes_are_ready
from tests.simulation.matrix import Step
from tests.simulation.outcome import stored_objects
from tests.simulation.pools import scenario
from tests.simulation.pools.changes import PING, behaving
from tests.simulation.pools.ledger import Ledger
from tests.simulation.pools.scenario import KEY, attach, detach, patch
from tests.simulation.pools.storms import CALM, LASTS, REPLICAS, attempt, delete, faults_of
from tests.simulation.simulation import Simulation, simulate

NODE_NAMES = ("node-1", "node-2", "node-3")
# Of nobody: one with a name of its own, one whose name the pool would give.
STRANGERS = ("db", f"{KEY.name}-3")
DRAINED = {"key": defaults.NODE_DRAIN_TAINT_KEY, "effect": "NoSchedule"}
DIES = f"{labels.SIMULATED}dies-after"
DOINGS = (
    *("good", "good", "bad", "scale", "detach", "attach"),
    *("drain", "undrain", "migrate", "migrate", "restart", "restart", "spoil", "spoil"),
)


class Travelled(msgspec.Struct, frozen=True):
    wrong: list[str]
    restarts: int
    healed: int
    trace: list[str]


def travel(seed: int, *, traced: bool = False) -> Travelled:
    async def main(simulation: Simulation) -> Travelled:
        ledger = Ledger(simulation)
        await simulation.started()
        processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", scenario.ROLLED.controllers) for letter in "ab"]
        await simulation.started(*processes, *(node(simulation, name) for name in NODE_NAMES))
        await nodes_are_ready(simulation.client())
        for fault in (*faults_of(seed), _lost_node(seed)):
            fault.install(simulation)
        await _People(simulation, ledger, random.Random(f"{seed}/pools/journeys")).live()
        await asyncio.sleep(CALM)
        wrong = [*ledger.wrong, *_unlike(stored_objects(simulation.server)), *simulation.trace.errors()]
        return Travelled(wrong, ledger.restarts, ledger.healed, simulation.trace.lines)

    return simulate(seed, main, scenario.ROLLED.kinds, traced=traced)


def _lost_node(seed: int) -> Killed:
    """For long enough that it is noticed."""
    dice = random.Random(f"{seed}/pools/nodes")
    return Killed(dice.choice(NODE_NAMES), round(dice.uniform(50.0, LASTS), 3), back_after=round(dice.uniform(60.0, 150.0), 3))


def _template(memory: str, fails_at: str | None = None) -> scenario.Json:
    wanted = behaving(memory, fails_at, livenessProbe=PING, evictionStrategy="LiveMigrate")
    del wanted["spec"]["template"]["spec"]["nodeSelector"]
    return wanted


class _People:
    def __init__(self, simulation: Simulation, ledger: Ledger, dice: random.Random) -> None:
        self._simulation, self._ledger, self._dice = simulation, ledger, dice
        self._person = simulation.client()
        self._detached: list[str] = []
        self._moves = 0

    async def live(self) -> None:
        for name in STRANGERS:
            await self._try(make("Halted", name))
        await self._try(scenario.make(REPLICAS, _template("64Mi"), autohealing={}, progressDeadlineSeconds=60))
        while self._simulation.loop.time() < LASTS:
            await asyncio.sleep(self._dice.uniform(1.0, 25.0))
            doing = self._dice.choice(DOINGS)
            self._simulation.trace.add("person", doing)
            await self._do(doing, f"{KEY.name}-{self._dice.choice((1, 2, 4, 5))}")
        await self._mend()

    async def _do(self, doing: str, name: str) -> None:
        if doing in ("good", "bad"):
            await self._try(patch(template=_template(f"{self._dice.randint(64, 128)}Mi", "start" if doing == "bad" else None)))
        elif doing == "scale":
            await self._try(patch(replicas=self._dice.randint(1, REPLICAS)))
        elif doing == "detach" and not self._detached:
            self._detached.append(name)
            await self._try(detach(name))
        elif doing == "attach" and self._detached:
            await self._try(attach(self._detached.pop()))
        elif doing in ("drain", "undrain"):
            await self._try(_taint(self._dice.choice(NODE_NAMES), drained=doing == "drain"))
        elif doing == "migrate":
            self._moves += 1
            await self._try(migrate(f"move-{self._moves}", name))
        elif doing in ("restart", "spoil"):
            await self._try(self._restart(name, {DIES: "0s"} if doing == "spoil" else None))

    def _restart(self, name: str, behaves: scenario.Json | None) -> Step:
        """By hand; and from then on it may behave otherwise than its template says."""

        async def step(client: Client) -> None:
            instance = await client.get(INSTANCES, Key(NAMESPACE, name))
            self._ledger.by_hand |= {instance.uid, *([name] if behaves else [])}
            changed: Any = {"metadata": {"annotations": {labels.RESTART_REQUEST: instance.uid}}}
            if behaves:
                changed["spec"] = {"template": {"metadata": {"annotations": behaves}}}
            await client.patch(MACHINES, Key(NAMESPACE, name), changed)

        return step

    async def _mend(self) -> None:
        """Nodes take machines again, what is detached goes, and what somebody has spoilt is as the template says."""
        for name in NODE_NAMES:
            await self._try(_taint(name, drained=False))
        self._ledger.by_hand |= set(self._detached)
        for name in self._detached:
            await self._try(delete(name))
        await self._try(self._unspoil)
        await self._try(patch(replicas=REPLICAS, template=_template("160Mi")))

    async def _unspoil(self, client: Client) -> None:
        for one in (await client.list(MACHINES, Selection(namespace=NAMESPACE))).items:
            if one.name not in STRANGERS:
                self._ledger.by_hand.add(one.name)
                await client.patch(
                    MACHINES, Key(NAMESPACE, one.name), {"spec": {"template": {"metadata": {"annotations": {DIES: None}}}}}
                )

    async def _try(self, step: Step) -> None:
        await attempt(self._person, step)


def _taint(name: str, *, drained: bool) -> Step:
    async def step(client: Client) -> None:
        found = await client.get(NODES, Key("", name))
        others = [msgspec.to_builtins(one) for one in found.spec.taints if one.key != defaults.NODE_DRAIN_TAINT_KEY]
        await client.patch(NODES, Key("", name), {"spec": {"taints": [*others, *([DRAINED] if drained else [])]}})

    return step


def _unlike(left: dict[str, bytes]) -> list[str]:
    machines = scenario.objects(left, "virtualmachines")
    ours = {name: one for name, one in machines.items() if name not in STRANGERS}
    words = {name: one.get("status", {}).get("printableStatus") for name, one in ours.items()}
    old = [name for name, one in ours.items() if one["spec"]["template"]["spec"]["domain"]["memory"]["guest"] != "160Mi"]
    found: list[str] = []
    if len(ours) != REPLICAS or set(words.values()) != {"Running"} or old:
        found.append(f"there should be {REPLICAS} that run, but there are {words}, and {old} are old")
    if not set(STRANGERS) <= set(machines):
        found.append(f"{STRANGERS} are of nobody, and there are only {sorted(machines)}")
    return found
