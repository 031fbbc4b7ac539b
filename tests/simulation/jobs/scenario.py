"""What people do with jobs, and what has to come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.api.registry import INSTANCE, JOB, MACHINE, MIGRATION, POOL, RESERVATION
from herder.controllers import EMBEDDED_ONLY
from herder.controllers.job import PodMigrationJobs
from herder.controllers.reservations import Reservations
from herder.kube.client import Client, Selection
from herder.kube.resources import DEPLOYMENTS, JOBS, PODS, STATEFUL_SETS, Key, Resource
from herder.scheduler import EMBEDDED_NAMES, scheduler
from tests.simulation.faults import CUT_OFF
from tests.simulation.jobs.ledger import Allowed, Ledger, left_over
from tests.simulation.matrix import Scenario, Step, Watch
from tests.simulation.simulation import Simulation
from tests.simulation.workloads.scenario import KEY, image, make, patch

Json = dict[str, Any]
KINDS = (INSTANCE, MACHINE, POOL, MIGRATION, RESERVATION, JOB)
CONTROLLERS = (*EMBEDDED_ONLY, Reservations.start, PodMigrationJobs.start, scheduler(EMBEDDED_NAMES))


# Of one replica: without any setting and any budget one may be away.
ONE = Allowed(per_node=2, per_workload=1, unavailable=1, replicas={"web": 1})


def watched(allowed: Allowed) -> Watch:
    def watch(simulation: Simulation) -> list[str]:
        return Ledger(simulation, allowed).wrong

    return watch


async def pods_of_web(client: Client) -> list[Pod]:
    """In the order of their names, those that are to stay."""
    pods = await client.list(PODS, Selection(namespace=KEY.namespace, labels="app=web"))
    return sorted((one for one in pods.items if not one.being_deleted), key=lambda one: one.name)


def file(name: str, number: int = 0, annotations: Json | None = None, **spec: Any) -> Step:
    """A job for one of the workload's pods. For ever: whatever a fault takes, it has time."""

    async def step(client: Client) -> None:
        pod = (await pods_of_web(client))[number]
        reference = {"namespace": pod.namespace, "name": pod.name}
        metadata = {"name": name, "annotations": annotations or {}}
        await client.create(JOBS, {"metadata": metadata, "spec": {"podRef": reference, "ttl": "0s", **spec}})

    return step


def change(name: str, **spec: Any) -> Step:
    async def step(client: Client) -> None:
        await client.patch(JOBS, Key("", name), {"spec": spec})

    return step


def abort(name: str) -> Step:
    async def step(client: Client) -> None:
        await client.patch(JOBS, Key("", name), {"metadata": {"annotations": {labels.ABORT: "true"}}})

    return step


def delete(name: str) -> Step:
    async def step(client: Client) -> None:
        await client.delete(JOBS, Key("", name))

    return step


def ended(replicas: int, **jobs: str) -> Callable[[dict[str, bytes]], str]:
    """Nothing where the jobs ended so (a phase, or a reason of Failed), so many pods run, and nothing is left behind."""

    def look(left: dict[str, bytes]) -> str:
        objects = {name: msgspec.json.decode(raw) for name, raw in left.items()}
        found = {name.partition(" ")[2]: one for name, one in objects.items() if name.startswith("podmigrationjobs.")}
        statuses = {name: one.get("status", {}) for name, one in found.items()}
        words = {name: status.get("reason") or status.get("phase") for name, status in statuses.items()}
        if words != jobs:
            return f"jobs should have ended as {jobs}, but did so as {statuses}"
        pods = [one for name, one in objects.items() if name.startswith("pods ")]
        running = [one["metadata"]["name"] for one in pods if one["status"].get("phase") == "Running"]
        if len(running) != replicas or len(pods) != replicas:
            return f"{replicas} pods should run, but {running} of {[one['metadata']['name'] for one in pods]} do"
        return "; ".join(left_over(left))

    return look


def scenario(name: str, *steps: Step, expect: Any, nodes: int = 2, allowed: Allowed = ONE, prepared: int = 1) -> Scenario:
    """Their first step makes the workload, at least: how that survives faults is tests/simulation/workloads' to tell."""
    return Scenario(
        name,
        kinds=KINDS,
        controllers=CONTROLLERS,
        steps=steps,
        expect=expect,
        nodes=nodes,
        quiet=CUT_OFF + 15,
        watch=watched(allowed),
        prepared=prepared,
    )


def _one(resource: Resource[Any]) -> Step:
    return make(resource, 1)


MOVED = scenario("moved", _one(DEPLOYMENTS), file("a"), expect=ended(1, a="Succeed"))
RETURNED = scenario("returned under its name", _one(STATEFUL_SETS), file("a"), expect=ended(1, a="Succeed"))
# With one node there is no other place, for who is evicted directly and for who looks for room.
EVICTED = scenario("evicted directly", _one(DEPLOYMENTS), file("a", mode="EvictDirectly"), expect=ended(1, a="Succeed"), nodes=1)
GIVEN_UP = scenario(
    "paused, resumed and given up",
    _one(DEPLOYMENTS),
    file("a"),
    change("a", paused=True),
    change("a", paused=False),
    abort("a"),
    file("b"),
    delete("b"),
    expect=ended(1, a="Aborted"),
    nodes=1,
)
OVERTAKEN = scenario(
    "overtaken by a rollout and scaled to nothing",
    _one(DEPLOYMENTS),
    file("a"),
    image("web:2"),
    file("b"),
    patch(DEPLOYMENTS, {"replicas": 0}),
    expect=ended(0, a="MissingPod", b="MissingPod"),
    nodes=1,
    allowed=Allowed(per_node=2, per_workload=1, others_go=True),
)
