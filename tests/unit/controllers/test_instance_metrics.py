"""The numbers of instances and pools on /metrics: counted once, under a pool that exists, and gone with it."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from prometheus_client import CollectorRegistry

from herder.api.registry import INSTANCE, MACHINE, POOL
from herder.api.world import timestamp
from herder.controllers.instance_metrics import InstanceMetrics
from herder.kube.client import Client
from herder.kube.resources import INSTANCES, MACHINES, POOLS, Key
from tests.unit.controllers.term import term
from tests.unit.kube.engine import Place, engine_in_virtual_time
from tests.unit.kube.virtual import VirtualWorld, in_virtual_time

Json = dict[str, Any]
SPEC: Json = {"domain": {"memory": {"guest": "64Mi"}}}
OF_POOL = {"namespace": "default", "vmpool": "web"}
OF_NONE = {"namespace": "", "vmpool": ""}
FROM_CREATION = "kubevirt_vmi_phase_transition_time_from_creation_seconds"
FROM_LAST = "kubevirt_vmi_phase_transition_time_seconds"


class Cluster:
    def __init__(self, place: Place, world: VirtualWorld, registry: CollectorRegistry) -> None:
        self._place = place
        self.world = world
        self.registry = registry
        self.client: Client = place.client()

    def leads(self) -> AbstractAsyncContextManager[None]:
        return term(self._place.client(), self.world, InstanceMetrics.start, self.registry)

    def number(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def numbers_of(self, pool: str) -> list[str]:
        samples = [one for family in self.registry.collect() for one in family.samples]
        return [one.name for one in samples if one.labels.get("vmpool") == pool]

    async def pool(self) -> Json:
        """A reference to it."""
        machine = {"spec": {"running": True, "template": {"spec": SPEC}}}
        body = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 1, "template": machine}}
        made = await self.client.create(POOLS, body)
        return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "name": "web", "uid": made.uid, "controller": True}

    async def machine(self, name: str, *owners: Json) -> None:
        """With an instance, which stays while it is held."""
        metadata: Json = {"name": name, "namespace": "default"}
        body = {"metadata": {**metadata, "ownerReferences": list(owners)}, "spec": {"running": True, "template": {"spec": SPEC}}}
        made = await self.client.create(MACHINES, body)
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": name, "uid": made.uid, "controller": True}
        held = {**metadata, "finalizers": ["herder.dev/instance"], "ownerReferences": [owner]}
        await self.client.create(INSTANCES, {"metadata": held, "spec": SPEC})

    async def reaches(self, name: str, *phases: str) -> None:
        """One after the other, a second each."""
        for phase in phases:
            await asyncio.sleep(1)
            known = (await self.client.get(INSTANCES, Key("default", name))).status
            times = {one.phase: one.phase_transition_timestamp for one in (known and known.phase_transition_timestamps) or ()}
            listed = [{"phase": one, "phaseTransitionTimestamp": timestamp(at.timestamp())} for one, at in times.items()]
            if phase not in times:
                listed.append({"phase": phase, "phaseTransitionTimestamp": timestamp(self.world.now())})
            status = {"status": {"phase": phase, "phaseTransitionTimestamps": listed}}
            await self.client.patch(INSTANCES, Key("default", name), status, subresource="status")
        await asyncio.sleep(1)


def play(story: Any) -> None:
    async def main() -> None:
        world = VirtualWorld()
        async with engine_in_virtual_time(world, (MACHINE, INSTANCE, POOL)) as place:
            await story(Cluster(place, world, CollectorRegistry()))

    in_virtual_time(main())


def test_starts_stops_and_the_time_between_phases_are_counted_by_pool_and_go_with_it() -> None:
    async def story(cluster: Cluster) -> None:
        async with cluster.leads():
            pool = await cluster.pool()
            await asyncio.sleep(1)
            assert cluster.number("herder_pool_vm_starts_total", **OF_POOL) == 0, "from zero"
            assert cluster.number("herder_pool_vm_stops_total", **OF_POOL) == 0
            await cluster.machine("web-1", pool)
            await cluster.machine("alone")
            await cluster.reaches("web-1", "Scheduled", "Running", "Unknown", "Running", "Failed")
            await cluster.reaches("alone", "Running")
            assert cluster.number("herder_pool_vm_starts_total", **OF_POOL) == 1
            assert cluster.number("herder_pool_vm_stops_total", **OF_POOL) == 1
            assert cluster.number(f"{FROM_CREATION}_count", phase="Running", **OF_POOL) == 1
            assert cluster.number(f"{FROM_LAST}_count", phase="Running", last_phase="Scheduled", **OF_POOL) == 1
            assert cluster.number(f"{FROM_LAST}_sum", phase="Running", last_phase="Scheduled", **OF_POOL) == 1
            assert cluster.number(f"{FROM_CREATION}_count", phase="Running", **OF_NONE) == 1
            assert cluster.number(f"{FROM_CREATION}_count", phase="Failed", **OF_NONE) == 0, "from zero"
            await cluster.client.delete(POOLS, Key("default", "web"))
            await asyncio.sleep(1)
            assert cluster.numbers_of("web") == []

    play(story)


def test_a_new_leader_counts_nothing_a_second_time() -> None:
    async def story(cluster: Cluster) -> None:
        async with cluster.leads():
            pool = await cluster.pool()
            await cluster.machine("web-1", pool)
            await cluster.machine("alone")
            await cluster.reaches("web-1", "Scheduled", "Running")
            await cluster.reaches("alone", "Running")
        assert cluster.numbers_of("web") == [], "who does not lead does not hear when the pool goes"
        async with cluster.leads():
            await asyncio.sleep(1)
            assert cluster.number("herder_pool_vm_starts_total", **OF_POOL) == 0
            assert cluster.number(f"{FROM_CREATION}_count", phase="Running", **OF_NONE) == 1, "as before"
            await cluster.reaches("web-1", "Succeeded")
            assert cluster.number("herder_pool_vm_stops_total", **OF_POOL) == 1
            assert cluster.number("herder_pool_vm_starts_total", **OF_POOL) == 0

    play(story)


def test_a_pool_is_named_only_where_it_exists_and_also_when_the_machine_goes_first() -> None:
    async def story(cluster: Cluster) -> None:
        async with cluster.leads():
            pool = await cluster.pool()
            for name, owner in (("other", {**pool, "uid": "made-up"}), ("stranger", {**pool, "apiVersion": "example.com/v1"})):
                await cluster.machine(name, owner)
                await cluster.reaches(name, "Running")
            assert cluster.number("herder_pool_vm_starts_total", **OF_POOL) == 0
            assert cluster.number(f"{FROM_CREATION}_count", phase="Running", **OF_NONE) == 2
            await cluster.machine("web-1", pool)
            await cluster.reaches("web-1", "Running")
            await cluster.client.delete(MACHINES, Key("default", "web-1"))
            await cluster.reaches("web-1", "Succeeded")
            assert cluster.number("herder_pool_vm_stops_total", **OF_POOL) == 1

    play(story)
