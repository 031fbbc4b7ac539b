"""Days full of trouble for jobs. Pods of a Deployment and of a StatefulSet are moved, by evictions or (with every other seed) by
deletions, some with the replacement first and some into given room; jobs are paused, resumed, aborted, deleted; nodes are cordoned
and die, answers are lost, leaders and servers die. Whatever happens: no limit and no budget is exceeded, nobody goes whom no job is
about, nobody is told to go twice, and in the end everything runs and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.kube.client import Client, Selection
from herder.kube.errors import KubeError
from herder.kube.resources import (
    BUDGETS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    RESERVATIONS,
    STATEFUL_SETS,
    Key,
    Resource,
)
from tests.simulation.cluster import CONTROLLERS, controllers, node
from tests.simulation.cluster import NODES as NODE_AGENTS
from tests.simulation.faults import AnswersLost, Fault, Killed
from tests.simulation.herd.scenario import nodes_are_ready
from tests.simulation.jobs import scenario
from tests.simulation.jobs.ledger import OVER, Allowed, Ledger, left_over
from tests.simulation.outcome import stored_objects
from tests.simulation.pools.storms import SUDDEN
from tests.simulation.simulation import Simulation, simulate

NAMESPACE = "default"
LASTS = 300.0
CALM = 900.0
REPLICAS = {"web": 6, "db": 3}
NODE_NAMES = [f"node-{number}" for number in (1, 2, 3, 4)]
SETTINGS = (
    "maxMigratingGlobally: 3\nmaxMigratingPerNode: 2\nmaxMigratingPerWorkload: 2\nmaxUnavailablePerWorkload: 2\nevictBurst: 5\n"
)
ALLOWED = Allowed(globally=3, per_node=2, per_workload=2, unavailable=1, replicas=REPLICAS)
Step = Callable[[], Awaitable[object]]


class Weathered(msgspec.Struct, frozen=True):
    wrong: list[str]
    evicted: int
    # How jobs ended, by phase.
    phases: dict[str, int]
    trace: list[str]


def faults_of(seed: int) -> list[Fault]:
    dice = random.Random(f"{seed}/jobs/faults")
    chosen: list[Fault] = [kind(CONTROLLERS, dice.randint(1, 400)) for kind in dice.choices(SUDDEN, k=dice.randint(3, 8))]
    chosen += [kind(NODE_AGENTS, dice.randint(1, 100)) for kind in dice.choices(SUDDEN, k=dice.randint(0, 3))]
    for machine in dice.choices(("controllers-a", "controllers-b", "api", *NODE_NAMES), k=dice.randint(2, 6)):
        chosen.append(Killed(machine, round(dice.uniform(10.0, LASTS), 3), back_after=round(dice.uniform(0.5, 30.0), 3)))
    return [*chosen, AnswersLost(CONTROLLERS, 0.02, random.Random(f"{seed}/jobs/answers"))]


def weather(seed: int, *, traced: bool = False) -> Weathered:
    async def main(simulation: Simulation) -> Weathered:
        ledger = Ledger(simulation, ALLOWED)
        await simulation.started()
        processes = [controllers(simulation, f"{CONTROLLERS}-{letter}", scenario.CONTROLLERS) for letter in "ab"]
        await simulation.started(*processes, *(node(simulation, name) for name in NODE_NAMES))
        person = simulation.client()
        await nodes_are_ready(person)
        for fault in faults_of(seed):
            fault.install(simulation)
        await _workloads(person, SETTINGS + (f"evictionPolicy: {'Delete' if seed % 2 else 'Eviction'}\n"))
        await asyncio.sleep(20.0)
        await _people(simulation, random.Random(f"{seed}/jobs/people"))
        await asyncio.sleep(CALM)
        left = stored_objects(simulation.server)
        wrong = [*ledger.wrong, *_unlike(left), *left_over(left), *simulation.trace.errors()]
        return Weathered(wrong, len(ledger.evicted), _phases(left), simulation.trace.lines)

    return simulate(seed, main, scenario.KINDS, traced=traced)


async def _workloads(person: Client, jobs: str) -> None:
    settings = {"metadata": {"name": "herder-config", "namespace": "herder-system"}, "data": {"jobs.yaml": jobs}}
    await _try(lambda: person.create(CONFIG_MAPS, settings))
    for resource, name in ((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db")):
        selector = {"matchLabels": {"app": name}}
        containers = [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}]
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
        spec = {"replicas": REPLICAS[name], "selector": selector, "template": template, "podManagementPolicy": "Parallel"}
        if resource is DEPLOYMENTS:
            del spec["podManagementPolicy"]
        metadata = {"name": name, "namespace": NAMESPACE}
        await _create(person, resource, {"metadata": metadata, "spec": spec})
        await _create(person, BUDGETS, {"metadata": metadata, "spec": {"selector": selector, "maxUnavailable": 1}})


async def _create(person: Client, resource: Resource[Any], document: scenario.Json) -> None:
    await _try(lambda: person.create(resource, document))


async def _people(simulation: Simulation, dice: random.Random) -> None:
    person = simulation.client()
    made = 0
    while simulation.loop.time() < LASTS:
        await asyncio.sleep(dice.uniform(0.1, 8.0))
        doing = dice.choice(("file", "file", "file", "file", "pause", "resume", "abort", "delete", "cordon", "uncordon"))
        simulation.trace.add("person", doing)
        if doing == "file":
            made += 1
            await _try(_filing(person, f"job-{made}", dice))
        elif doing in ("cordon", "uncordon"):
            await _try(_cordoning(person, dice.choice(NODE_NAMES), cordoned=doing == "cordon"))
        else:
            await _try(_changing(person, doing, dice))
    for name in NODE_NAMES:
        await _try(_cordoning(person, name, cordoned=False))
    await _try(lambda: _resume_all(person))
    await asyncio.sleep(LASTS)
    await _try(lambda: _take_back_rooms(person))


def _filing(person: Client, name: str, dice: random.Random) -> Step:
    mode, paused, chance = (
        dice.choice(("ReservationFirst", "ReservationFirst", "EvictDirectly")),
        dice.random() < 0.1,
        dice.random(),
    )
    surges, given = dice.random() < 0.3, dice.random() < 0.2

    async def step() -> None:
        pods = sorted((await person.list(PODS, Selection(namespace=NAMESPACE))).items, key=lambda one: one.name)
        if not pods:
            return
        pod = pods[int(chance * len(pods))]
        spec: scenario.Json = {"podRef": {"namespace": NAMESPACE, "name": pod.name}, "mode": mode, "paused": paused, "ttl": "2m"}
        if given:
            await _reserve(person, f"for-{name}", pod)
            spec["reservationOptions"] = {"reservationRef": {"name": f"for-{name}"}}
        metadata = {"name": name, "annotations": {labels.SURGE: "true"} if surges else {}}
        await person.create(JOBS, {"metadata": metadata, "spec": spec})

    return step


async def _reserve(person: Client, name: str, pod: Pod) -> None:
    """For the pods of the same workload, on a node that this one is not on."""
    away = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [pod.spec.node_name or "none"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [away]}}}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]
    template = {"metadata": {"namespace": NAMESPACE}, "spec": {"containers": containers, "affinity": affinity}}
    spec = {"template": template, "owners": [{"labelSelector": {"matchLabels": {"app": pod.labels["app"]}}}], "ttl": "0s"}
    if await person.find(RESERVATIONS, Key("", name)) is None:
        await person.create(RESERVATIONS, {"metadata": {"name": name}, "spec": spec})


async def _take_back_rooms(person: Client) -> None:
    """Those that people gave: jobs never release them."""
    for room in (await person.list(RESERVATIONS)).items:
        if not room.metadata.owner_references and room.status.phase not in ("Succeeded", "Failed"):
            await person.delete(RESERVATIONS, Key("", room.name))


def _cordoning(person: Client, name: str, *, cordoned: bool) -> Step:
    async def step() -> None:
        await person.patch(NODES, Key("", name), {"spec": {"unschedulable": cordoned or None}})

    return step


def _changing(person: Client, doing: str, dice: random.Random) -> Step:
    chance = dice.random()

    async def step() -> None:
        jobs = sorted((await person.list(JOBS)).items, key=lambda one: one.name)
        unfinished = [one for one in jobs if one.status is None or one.status.phase not in OVER]
        if not unfinished:
            return
        key = Key("", unfinished[int(chance * len(unfinished))].name)
        if doing == "delete":
            await person.delete(JOBS, key)
        elif doing == "abort":
            await person.patch(JOBS, key, {"metadata": {"annotations": {labels.ABORT: "true"}}})
        else:
            await person.patch(JOBS, key, {"spec": {"paused": doing == "pause"}})

    return step


async def _resume_all(person: Client) -> None:
    for job in (await person.list(JOBS)).items:
        if job.spec.paused:
            await person.patch(JOBS, Key("", job.name), {"spec": {"paused": False}})


async def _try(step: Step) -> None:
    """People are patient with a server that is away; what is refused they leave at that."""
    for _ in range(5):
        with contextlib.suppress(KubeError):
            await step()
            return
        await asyncio.sleep(2.0)


def _unlike(left: dict[str, bytes]) -> list[str]:
    pods = [msgspec.json.decode(raw) for name, raw in left.items() if name.startswith("pods ")]
    found: list[str] = []
    for app, wanted in REPLICAS.items():
        phases = [one["status"].get("phase") for one in pods if one["metadata"]["labels"]["app"] == app]
        if phases != ["Running"] * wanted:
            found.append(f"of {app} {wanted} should run, but there are {phases}")
    return found


def _phases(left: dict[str, bytes]) -> dict[str, int]:
    phases = [
        msgspec.json.decode(raw).get("status", {}).get("phase") for name, raw in left.items() if name.startswith("podmigration")
    ]
    return {phase: phases.count(phase) for phase in dict.fromkeys(phases)}
