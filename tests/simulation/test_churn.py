"""Everything comes and goes for ever, each time under another name: nobody remembers what is gone.

The whole control plane in one process; after some rounds the sizes of all that any object of ours holds are compared.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter, OrderedDict, deque
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from herder.api.registry import DATA_VOLUME, INSTANCE, JOB, MACHINE, MIGRATION, POLICY, POOL, RESERVATION, REVIEW, SETTINGS
from herder.controllers import CONTROLLERS, EMBEDDED_ONLY
from herder.controllers.node_lifecycle import NODE_LIFECYCLE
from herder.kube import queue
from herder.kube.client import Client
from herder.kube.errors import NotFound
from herder.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    INSTANCES,
    MACHINES,
    NAMESPACES,
    NODES,
    PODS,
    Anything,
    Key,
)
from herder.nodes.fleet import Fleet
from herder.rules.placement import columns
from herder.rules.placement import nodes as placement_nodes
from herder.scheduler import NAMES, scheduler
from tests.engines.waiting import eventually
from tests.machines.herd import machine
from tests.simulation.cluster import controllers
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation, simulate

CONTAINERS = (dict, set, list, deque, OrderedDict, Counter)
WARM_UP, ROUNDS = 3, 12
# What is bounded in another way, or tells what has happened: by rows, by time, by a number of entries.
BOUNDED = (
    "herder.server.store.",  # history, until it is compacted
    "herder.server.housekeeping.expiry.Expiry._written",  # events, for an hour
    "herder.server.housekeeping.recorder.Recorder._names",
    "herder.server.events.limits.",
    "herder.server.templates.Templates.",
    "herder.kube.events.",
    "herder.server.housekeeping.compaction.",
    "herder.rules.placement.crowds.",  # the 1,024 that were asked for last
    "herder.server.access.tokens.",
)


def sizes() -> Counter[str]:
    """By class and attribute, all instances together. Views of objects come and go with the objects."""
    gc.collect()
    found: Counter[str] = Counter()
    for one in gc.get_objects():
        kind = type(one)
        # Of some built-in classes it is no text.
        module = str(kind.__module__)
        if module.startswith("herder.") and not module.startswith("herder.api."):
            for name, value in _attributes(one):
                if isinstance(value, CONTAINERS):
                    inside = value.values() if isinstance(value, dict) else value
                    found[f"{module}.{kind.__qualname__}.{name}"] += len(value) + sum(map(_length, inside))
    return found


def _length(value: object) -> int:
    return len(value) if isinstance(value, CONTAINERS) else 0


def _attributes(one: object) -> list[tuple[str, Any]]:
    names = [*getattr(one, "__dict__", ()), *getattr(type(one), "__slots__", ()), *getattr(type(one), "__struct_fields__", ())]
    return [(name, getattr(one, name, None)) for name in names]


async def come_and_go(client: Client, number: int) -> None:
    name = f"round-{number}"
    labels = {"herder.dev/runtime": "simulated", "own": name, "kubernetes.io/hostname": name}
    taint = {"key": f"taint-{number}", "value": name, "effect": "PreferNoSchedule"}
    await client.create(NODES, {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [taint]}})
    await client.create(NAMESPACES, {"metadata": {"name": name, "labels": {"own": name}}})
    await client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": name}, "data": {"a": "b"}})
    guest = machine("Always", name=name, nodeSelector={"own": name})
    guest["metadata"]["namespace"] = name
    await client.create(MACHINES, guest)
    template = {"metadata": {"labels": {"app": name}}, "spec": _pod_spec(name)}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    await client.create(DEPLOYMENTS, {"metadata": {"name": name, "namespace": name}, "spec": spec})
    await eventually(lambda: _all_run(client, name), patience=120.0)
    # One that has no place, and one whose node is gone before it is.
    nowhere = {"metadata": {"name": "nowhere", "namespace": name}, "spec": _pod_spec("nothing")}
    await client.create(PODS, nowhere)
    # What a tenant may make up: resources, ports, keys of labels and topologies. This one goes past the scheduler.
    await client.create(PODS, {"metadata": {"name": "odd", "namespace": name}, "spec": {**_odd(name), "nodeName": name}})
    await client.create(
        PODS, {"metadata": {"name": "odder", "namespace": name}, "spec": {**_odd(name), "nodeSelector": {name: name}}}
    )
    await asyncio.sleep(5.0)
    await client.delete(NODES, Key("", name))
    await eventually(lambda: _is_gone(client, NODES, Key("", name)), patience=120.0)
    await client.delete(MACHINES, Key(name, name))
    await client.delete(NAMESPACES, Key("", name))
    await eventually(lambda: _is_gone(client, NAMESPACES, Key("", name)), patience=300.0)


def _pod_spec(own: str) -> dict[str, Any]:
    near = [{"topologyKey": "own", "labelSelector": {"matchLabels": {"app": own}}}]
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": near[0]}]}}
    containers = [{"name": "c", "image": "i"}]
    return {"schedulerName": NAMES[0], "nodeSelector": {"own": own}, "affinity": affinity, "containers": containers}


def _odd(name: str) -> dict[str, Any]:
    amount = {f"example.com/{name}": "1"}
    port = {"containerPort": 80, "hostPort": 1000 + int(name.rpartition("-")[2])}
    container = {"name": "c", "image": "i", "resources": {"requests": amount, "limits": amount}, "ports": [port]}
    term = {"topologyKey": f"{name}/zone", "labelSelector": {"matchLabels": {"app": name}}}
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}}
    return {"schedulerName": NAMES[0], "affinity": affinity, "containers": [container]}


async def _all_run(client: Client, namespace: str) -> bool:
    instance = await client.find(INSTANCES, Key(namespace, namespace))
    pods = [pod.status.phase for pod in (await client.list(PODS)).items if pod.namespace == namespace]
    runs = instance is not None and instance.status is not None and instance.status.phase == "Running"
    assert (runs, pods) == (True, ["Running"] * 3), [(p.name, p.status.conditions) for p in (await client.list(PODS)).items]
    return True


async def _is_gone(client: Client, resource: Anything, key: Key) -> bool:
    try:
        return await client.find(resource, key) is None
    except NotFound:
        return True


# Longer than any look that is put off: the last word about a pod that takes long comes after ten minutes.
REST = 900.0


@pytest.mark.slow
def test_nobody_remembers_for_ever_what_has_gone(first_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # What may be kept for a while is kept for less, so that a few rounds show whether it goes.
    for module, name in (
        (columns, "MOST_UNUSED"),
        (columns, "MOST_COLUMNS"),
        (placement_nodes, "MOST_TAINT_SETS"),
        (queue, "MOST_REPLACED"),
    ):
        monkeypatch.setattr(module, name, 1 if module is columns else 0)

    async def main(simulation: Simulation) -> dict[str, int]:
        async def nodes(me: Machine) -> None:
            await Fleet(simulation.client(me, "nodes"), me.world, (), CollectorRegistry()).run()

        everything = (*CONTROLLERS, *EMBEDDED_ONLY, *NODE_LIFECYCLE, scheduler(NAMES))
        await simulation.started(controllers(simulation, "controllers-a", everything), simulation.machine("fleet", nodes))
        client = simulation.client()
        for number in range(WARM_UP):
            await come_and_go(client, number)
        await asyncio.sleep(REST)
        before = sizes()
        for number in range(WARM_UP, WARM_UP + ROUNDS):
            await come_and_go(client, number)
        await asyncio.sleep(REST)
        grown = {name: size - before[name] for name, size in sizes().items() if size - before[name] >= ROUNDS // 2}
        return {name: more for name, more in grown.items() if not name.startswith(BOUNDED)}

    kinds = (MACHINE, INSTANCE, DATA_VOLUME, SETTINGS, MIGRATION, POLICY, REVIEW, POOL, RESERVATION, JOB)
    grown = simulate(first_seed, main, kinds, traced=False)
    assert not grown, "\n".join(f"{name}: {more} more" for name, more in grown.items())
