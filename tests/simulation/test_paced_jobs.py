"""Jobs that are held on the way: guests are paced as evictions are, and who refuses an eviction is counted."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from herder.kube.cache import Caches
from herder.kube.events import Recorder
from herder.kube.kit import Kit, run_controllers
from herder.kube.resources import INSTANCES, Key
from herder.kube.transport import Reply
from tests.engines.waiting import eventually
from tests.simulation.cluster import CONTROLLERS, controllers, node
from tests.simulation.herd import scenario as herd
from tests.simulation.herd.limits import runs
from tests.simulation.jobs import scenario
from tests.simulation.jobs.cluster import Cluster
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation, simulate
from tests.simulation.wire import Go, Sent

GUESTS = ("vm-1", "vm-2")
PATIENCE = 600.0


def test_guests_are_moved_no_faster_than_pods_would_be_evicted() -> None:
    """Flow control covers live migrations, too: one in twenty seconds."""

    async def main(simulation: Simulation) -> None:
        await simulation.started()
        process = controllers(simulation, f"{CONTROLLERS}-a", herd.MOVED.controllers)
        await simulation.started(process, *(node(simulation, f"node-{number + 1}") for number in range(herd.COUNT)))
        cluster = Cluster(simulation)
        await herd.nodes_are_ready(cluster.client)
        await cluster.settings('evictQPS: "0.05"\nevictBurst: 1\nmaxMigratingPerNode: 9')
        began = _beginnings_of_migrations(simulation)
        for name in GUESTS:
            await herd.make(name=name)(cluster.client)
            await eventually(lambda name=name: runs(cluster.client, name), patience=PATIENCE)
        for name in GUESTS:
            instance = await cluster.client.get(INSTANCES, Key(herd.NAMESPACE, name))
            assert instance.status is not None
            await cluster.file(name, instance.status.launcher_pod_name or "")
        await asyncio.sleep(15)
        assert ("Running", "WaitingForFlowControl") in (await cluster.statuses()).values()
        await asyncio.sleep(120)
        assert await cluster.statuses() == dict.fromkeys(GUESTS, ("Succeed", ""))
        assert len(began) == 2 and began[1] - began[0] > 19.9, began

    simulate(1, main, herd.MOVED.kinds, traced=False)


def _beginnings_of_migrations(simulation: Simulation) -> list[float]:
    began: list[float] = []
    simulation.server.listeners.append(
        lambda change: (
            began.append(simulation.loop.time())
            if change.table.startswith("virtualmachineinstancemigrations.") and change.kind == "ADDED"
            else None
        )
    )
    return began


def test_evictions_that_are_refused_are_counted_by_whom() -> None:
    """Twice a budget, as the server says it, and once the server itself."""
    registry = CollectorRegistry()

    async def main(simulation: Simulation) -> None:
        await simulation.started()
        nodes = [node(simulation, f"node-{number}") for number in (1, 2)]
        await simulation.started(_controllers(simulation, registry), *nodes)
        cluster = Cluster(simulation)
        (pod,) = await cluster.deploy("web", 1)
        answers = [429, 429, 403]

        async def refuse(sent: Sent, go: Go) -> Reply:
            evicts = sent.call.path.endswith("/eviction")
            return _says(answers.pop(0)) if evicts and answers else await go()

        simulation.wire(CONTROLLERS).around.append(refuse)
        await cluster.file("a", pod)
        await asyncio.sleep(60)
        assert await cluster.statuses() == {"a": ("Succeed", "")}
        assert _sample(registry, "evictions_refused_total", by="Budget") == 2
        assert _sample(registry, "evictions_refused_total", by="Server") == 1
        assert _sample(registry, "disruptions_total", how="Eviction") == 1
        assert _sample(registry, "jobs_finished_total", phase="Succeed", reason="") == 1

    simulate(1, main, scenario.KINDS, traced=False)


def _controllers(simulation: Simulation, registry: CollectorRegistry) -> Machine:
    async def main(machine: Machine) -> None:
        client, world = simulation.client(machine, CONTROLLERS), machine.world
        recorder = Recorder(client, world, "test", instance="test", registry=registry)
        await run_controllers(Kit(client, Caches(client, world, registry), recorder, world, registry), scenario.CONTROLLERS)

    return simulation.machine(CONTROLLERS, main)


def _says(code: int) -> Reply:
    reason = {429: "TooManyRequests", 403: "Forbidden"}[code]
    about: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return Reply(code, msgspec.json.encode({**about, "message": "not now", "reason": reason, "code": code}))


def _sample(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"herder_pod_migration_{name}", labels)
