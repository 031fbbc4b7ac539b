"""A thousand migrations that wait, in a world where nothing else happens: only the controller that has to let them wait."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec
from prometheus_client import CollectorRegistry

from herder.api import labels
from herder.controllers.migration import Migrations
from herder.kube.client import Client
from herder.kube.kit import Kit, Runs
from herder.kube.resources import INSTANCES, MIGRATIONS, NODES, PODS, SETTINGS, Key
from herder.kube.transport import Reply
from herder.rules.migration import phase_of
from tests.simulation.cluster import CONTROLLERS, controllers
from tests.simulation.herd import scenario
from tests.simulation.simulation import Simulation, simulate
from tests.simulation.wire import PASSING, Go, Sent

SEED = 1
HOSTS = 10
LIMIT = 5
HOUR, DAY = 3600.0, 86_400


class Work(msgspec.Struct, frozen=True):
    """Of the controller, in some time."""

    reconciles: float
    requests: int


class Seen(msgspec.Struct, frozen=True):
    # The thousand come, an hour passes, one of those under way is cancelled.
    came: Work
    hour: Work
    ended: Work
    phases: Counter[str]
    begun_by_the_end: int


class Counting:
    def __init__(self, simulation: Simulation) -> None:
        self._registry = CollectorRegistry()
        self._requests = 0
        self._last = Work(0, 0)
        simulation.wire(CONTROLLERS).around.append(self._around)

    async def _around(self, sent: Sent, go: Go) -> Reply:
        self._requests += not any(one in sent.call.path for one in PASSING)
        return await go()

    def start(self, kit: Kit) -> Runs:
        self._registry = kit.registry
        return Migrations.start(kit)

    def lap(self) -> Work:
        """Since the last one."""
        samples = (sample for family in self._registry.collect() for sample in family.samples)
        reconciles = sum(one.value for one in samples if one.name == "herder_reconcile_total")
        before, self._last = self._last, Work(reconciles, self._requests)
        return Work(reconciles - before.reconciles, self._requests - before.requests)


def queued(count: int) -> Seen:
    async def main(simulation: Simulation) -> Seen:
        counting = Counting(simulation)
        await simulation.started(controllers(simulation, CONTROLLERS, (counting.start,)))
        person = simulation.client()
        await _prepare(person, count)
        counting.lap()
        for number in range(count):
            await scenario.migrate(f"move-{number}", f"vm-{number}")(person)
        await simulation.at_rest()
        came, phases, one = counting.lap(), await _phases(person), await _under_way(person)
        await asyncio.sleep(HOUR)
        hour = counting.lap()
        await person.delete(MIGRATIONS, Key(scenario.NAMESPACE, one))
        await simulation.at_rest()
        ended = counting.lap()
        return Seen(came, hour, ended, phases, (await _phases(person))["Scheduling"])

    return simulate(SEED, main, scenario.MOVED.kinds, traced=False, latency=False)


async def _prepare(person: Client, count: int) -> None:
    """Guests that run, as far as anybody can see. Nobody places their targets: who has begun holds its place."""
    migrations = {"parallelMigrationsPerCluster": LIMIT, "unschedulablePendingTimeout": DAY}
    spec = {"configuration": {"migrations": migrations}}
    await person.apply(SETTINGS, Key("kubevirt", "kubevirt"), {"spec": spec})
    for number in range(HOSTS):
        await person.create(NODES, {"metadata": {"name": f"node-{number}"}})
    for number in range(count):
        await _guest(person, f"vm-{number}", f"node-{number % HOSTS}")


async def _guest(person: Client, name: str, node: str) -> None:
    key = Key(scenario.NAMESPACE, name)
    metadata = {"name": name, "namespace": key.namespace}
    made = await person.create(INSTANCES, {"metadata": metadata, "spec": {"domain": {"memory": {"guest": "64Mi"}}}})
    await person.patch(INSTANCES, key, {"status": {"phase": "Running", "nodeName": node}}, subresource="status")
    owner = {"apiVersion": INSTANCES.api_version, "kind": INSTANCES.kind, "name": name, "uid": made.uid, "controller": True}
    launcher = {**metadata, "labels": {labels.APP: labels.LAUNCHER}, "ownerReferences": [owner]}
    await person.create(PODS, {"metadata": launcher, "spec": {"nodeName": node, "containers": [{"name": "compute", "image": "i"}]}})


async def _phases(person: Client) -> Counter[str]:
    return Counter[str](phase_of(one) for one in (await person.list(MIGRATIONS)).items)


async def _under_way(person: Client) -> str:
    return next(one.name for one in (await person.list(MIGRATIONS)).items if phase_of(one) == "Scheduling")
