"""A cluster under virtual time in which jobs run: for what takes long, or depends on settings that all jobs share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from herder.api.core import Pod
from herder.api.kinds import PodMigrationJob
from herder.kube.client import Client, Selection
from herder.kube.resources import CONFIG_MAPS, DEPLOYMENTS, JOBS, PODS, RESERVATIONS, Key, Resource
from tests.simulation.cluster import CONTROLLERS, controllers, node
from tests.simulation.jobs import scenario
from tests.simulation.simulation import Simulation, simulate

Json = dict[str, Any]
CONFIG = Key("herder-system", "herder-config")


class Cluster:
    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.client: Client = simulation.client()

    async def settings(self, text: str) -> None:
        """What was said before is not said any more."""
        document: Json = {"metadata": {"name": CONFIG.name, "namespace": CONFIG.namespace}, "data": {"jobs.yaml": text}}
        if await self.client.find(CONFIG_MAPS, CONFIG) is None:
            await self.client.create(CONFIG_MAPS, document)
        else:
            await self.client.patch(CONFIG_MAPS, CONFIG, document)
        await asyncio.sleep(2)

    async def deploy(
        self, name: str, replicas: int, of: Resource[Any] = DEPLOYMENTS, namespace: str = "default", **pod: Any
    ) -> list[str]:
        """The names of its pods."""
        containers = [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}]
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **pod}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        await self.client.create(of, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})
        await asyncio.sleep(10)
        return [pod.name for pod in (await self.client.list(PODS, Selection(namespace, f"app={name}"))).items]

    async def file(self, name: str, pod: str, namespace: str = "default", **spec: Any) -> None:
        reference = {"namespace": namespace, "name": pod}
        await self.client.create(JOBS, {"metadata": {"name": name}, "spec": {"podRef": reference, "ttl": "0s", **spec}})

    async def change(self, name: str, **spec: Any) -> None:
        await self.client.patch(JOBS, Key("", name), {"spec": spec})

    async def statuses(self) -> dict[str, tuple[str, str]]:
        """Phase and reason of each job."""
        listed = (await self.client.list(JOBS)).items
        shown = {job.name: job.status for job in listed}
        return {name: ((status.phase or "", status.reason or "") if status else ("", "")) for name, status in shown.items()}

    async def job(self, name: str) -> PodMigrationJob:
        return await self.client.get(JOBS, Key("", name))

    async def pod(self, name: str) -> Pod:
        """The only one of the workload of this name that is to stay."""
        listed = (await self.client.list(PODS, Selection("default", f"app={name}"))).items
        (found,) = [one for one in listed if not one.being_deleted]
        return found

    async def nothing_is_left(self) -> None:
        """No room that nobody took, and nothing that keeps a job."""
        rooms = (await self.client.list(RESERVATIONS)).items
        assert [(one.name, one.status.phase) for one in rooms if one.status.phase not in ("Succeeded", "Failed")] == []
        assert all(not job.metadata.finalizers for job in (await self.client.list(JOBS)).items)

    async def pods(self) -> set[str]:
        return {pod.uid for pod in (await self.client.list(PODS, Selection("default"))).items}


def in_cluster(story: Callable[[Cluster], Awaitable[None]], nodes: int = 3) -> None:
    async def main(simulation: Simulation) -> None:
        await simulation.started()
        process = controllers(simulation, f"{CONTROLLERS}-a", scenario.CONTROLLERS)
        await simulation.started(process, *(node(simulation, f"node-{number + 1}") for number in range(nodes)))
        cluster = Cluster(simulation)
        await asyncio.sleep(10)
        await story(cluster)
        wrong = simulation.trace.errors()
        assert not wrong, wrong

    simulate(1, main, scenario.KINDS, traced=False)
