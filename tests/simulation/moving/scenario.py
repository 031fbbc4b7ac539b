"""One migration from node-1 to node-2, with whatever happens on the way, and what is wrong with its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import GuestDefinition, Owner, report_of
from herder.api.kinds.domain import Devices, Domain
from herder.api.kinds.instance import VirtualMachineInstanceSpec
from herder.kube.resources import NODES as NODE_OBJECTS
from herder.kube.resources import PODS, Key
from herder.nodes.moving import Switchboard
from herder.nodes.moving.link import Unreachable
from herder.nodes.moving.messages import Answer, Request
from herder.nodes.moving.switchboard import Go
from tests.engines.waiting import eventually
from tests.simulation.machine import Machine
from tests.simulation.moving.hosts import Host, node
from tests.simulation.moving.ledger import Ledger
from tests.simulation.moving.orders import NAMESPACE, SOURCE, TARGET, Wanted, controller, pod_document
from tests.simulation.moving.points import Points
from tests.simulation.simulation import Simulation, simulate

INSTANCE = "vm"
MEMORY_RATE = "200Mi"
START_PATIENCE = 120.0
# Longer than anything that is waited for, one after the other: a server away, links cut, a target that never answers, twice.
CALM = 100.0


class World:
    """What there is in a run, for those who want to do something to it."""

    def __init__(self, simulation: Simulation, wanted: Wanted, guest: dict[str, str]) -> None:
        self.simulation = simulation
        self.wanted = wanted
        self.guest = guest
        self.ledger = Ledger(simulation.trace)
        self.points = Points(simulation.trace)
        self.board = Switchboard("simulation")
        self.board.around.append(self._travel)
        self.links_cut_until = 0.0
        self.source = Host("node-1", simulation, self.ledger, self.points)
        self.target = Host("node-2", simulation, self.ledger, self.points)
        self.target.have(None, wanted.no_post_copy)
        self.controller: Machine | None = None
        self.person = simulation.client()

    async def _travel(self, source: str, target: str, request: Request, go: Go) -> Answer:
        """Half a millisecond each way; what was said or answered may be lost."""
        what = type(request).__name__
        host = self.source if source == self.source.name else self.target
        self.points.reach(f"{source} asks {what}", host.machine)
        await asyncio.sleep(0.0005)
        if self._cut():
            raise Unreachable("the link is cut")
        other = self.target if host is self.source else self.source
        answering = other.machine.spawn(_awaited(go))
        await asyncio.wait([answering])
        if answering.cancelled():
            raise Unreachable("the agent died before it had answered")
        answer = answering.result()
        life = other.machine.lives
        self.points.reach(f"{target} answered {type(answer).__name__}")
        await asyncio.sleep(0.0005)
        if self._cut() or not other.machine.alive or other.machine.lives != life:
            raise Unreachable("the answer was lost")
        return answer

    def _cut(self) -> bool:
        return self.simulation.loop.time() < self.links_cut_until


async def _awaited(go: Go) -> Answer:
    return await go()


Happening = Callable[[World], None]


class Ended(msgspec.Struct, frozen=True):
    points: list[str]
    wrong: list[str]
    # Where the guest runs in the end: node-1, node-2, or nowhere.
    runs_on: str
    said: str
    trace: list[str]


def play(
    seed: int,
    *happenings: tuple[int, Happening],
    wanted: Wanted | None = None,
    guest: dict[str, str] | None = None,
    make_controller: Callable[[Simulation, Wanted], Machine] = controller,
    traced: bool = False,
) -> Ended:
    async def main(simulation: Simulation) -> Ended:
        world = World(simulation, wanted or Wanted(), guest or {"dirty-rate": MEMORY_RATE, "boot": "0.1s"})
        for number, happening in happenings:
            world.points.at(number, lambda one=happening: one(world))
        await simulation.started()
        await simulation.started(*(node(simulation, host, world.board) for host in (world.source, world.target)))
        await _make_source(world)
        world.controller = make_controller(simulation, world.wanted)
        world.controller.start()
        await simulation.at_rest(CALM)
        await world.person.wait_until_ready()
        return await _ended(world)

    return simulate(seed, main, traced=traced)


async def _make_source(world: World) -> None:
    spec = VirtualMachineInstanceSpec(domain=Domain(devices=Devices()))
    owner = Owner(namespace=NAMESPACE, name=INSTANCE, uid="instance-uid")
    definition = GuestDefinition(instance=owner, spec=spec, simulated=world.guest)
    annotations = {labels.GUEST: msgspec.json.encode(definition).decode()}
    for name in (world.source.name, world.target.name):
        await eventually(lambda name=name: _is_there(world, name), patience=START_PATIENCE)
    await world.person.create(PODS, pod_document(SOURCE.name, world.source.name, annotations))

    async def runs() -> bool:
        return bool(world.ledger.where(INSTANCE))

    await eventually(runs, patience=START_PATIENCE)


async def _is_there(world: World, node: str) -> bool:
    return await world.person.find(NODE_OBJECTS, Key("", node)) is not None


async def _ended(world: World) -> Ended:
    running = world.ledger.where(INSTANCE)
    wrong = [*world.ledger.wrong, *world.simulation.trace.errors()]
    pods = {key: pod for key in (SOURCE, TARGET) if (pod := await world.person.find(PODS, key)) is not None}
    wrong += _unlike(running, pods)
    wrong += _leaks(world, pods)
    said = "; ".join(f"{pod.name} {_word(pod)}" for pod in pods.values())
    return Ended(world.points.reached, wrong, running[0].split("/")[0] if running else "", said, world.simulation.trace.lines)


def _unlike(running: list[str], pods: dict[Key, Pod]) -> list[str]:
    """The guest runs where a pod says so, and where none runs a pod says why, or was deleted by somebody."""
    said = [f"{pod.spec.node_name}/{pod.uid}" for pod in pods.values() if _state(pod) == "Running"]
    found = [f"it runs at {running}, but pods say {said}"] if said != running else []
    waiting = [pod.name for pod in pods.values() if _state(pod) == "Incoming" or (pod.being_deleted)]
    return found + [f"pod {name} waits for ever" for name in waiting]


def _leaks(world: World, pods: dict[Key, Pod]) -> list[str]:
    found: list[str] = []
    for host in (world.source, world.target):
        known = {pod.uid for pod in pods.values() if pod.spec.node_name == host.name}
        found += [f"{host.name} still has guest {uid}" for uid in host.guests() if uid not in known]
        found += [f"{host.name} still has a note of {uid}" for uid, _ in host.notes.notes if uid not in known]
        found += [f"{host.name} still copies" for _ in host.moves_under_way()]
    return found


def _state(pod: Pod) -> str:
    report = report_of(pod)
    return report.state if report is not None else ""


def _word(pod: Pod) -> str:
    report = report_of(pod)
    if report is None:
        return pod.status.phase
    told = report.migration
    return f"{report.state} {report.reason}: {report.message} [{told.failed + ' ' + told.message if told else ''}]"
