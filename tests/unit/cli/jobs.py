"""An engine inside the test with nodes, a Deployment's pods and jobs: what the commands for jobs, and `herder.client`, talk to."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from herder.api.core import Pod
from herder.api.registry import INSTANCE, JOB, MACHINE, POOL, RESERVATION
from herder.app.inside import InsideTransport
from herder.kube.client import Client
from herder.kube.resources import DEPLOYMENTS, JOBS, NODES, PODS, REPLICA_SETS, Key
from herder.server.request import ENGINE
from tests.unit.server.inside import engine_inside

Json = dict[str, Any]
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10"}
APP = {"app": "web"}
SPEC = {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}


class Stage:
    """Everything of it is in namespace default."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._owner: Json = {}

    async def node(self, name: str) -> None:
        await self.client.create(NODES, {"metadata": {"name": name}})
        status = {"capacity": ROOM, "allocatable": ROOM, "conditions": [{"type": "Ready", "status": "True"}]}
        await self.client.patch(NODES, Key("", name), {"status": status}, subresource="status")

    async def deployment(self, replicas: int) -> None:
        template = {"metadata": {"labels": APP}, "spec": SPEC}
        spec = {"replicas": replicas, "selector": {"matchLabels": APP}, "template": template}
        top = await self.client.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, "default")
        metadata = {"name": "web-1", "ownerReferences": [_owner("Deployment", "web", top.uid)]}
        below = await self.client.create(REPLICA_SETS, {"metadata": metadata, "spec": spec}, "default")
        seen = {"observedGeneration": 1, "replicas": replicas}
        for kind, name, more in ((DEPLOYMENTS, "web", {"updatedReplicas": replicas}), (REPLICA_SETS, "web-1", {})):
            await self.client.patch(kind, Key("default", name), {"status": {**seen, **more}}, subresource="status")
        self._owner = _owner("ReplicaSet", "web-1", below.uid)

    async def pod(self, name: str, node: str, *, owned: bool = True, **annotations: str) -> Pod:
        owners = {"ownerReferences": [self._owner]} if owned else {}
        metadata = {"name": name, "labels": APP, "annotations": annotations, **owners}
        await self.client.create(PODS, {"metadata": metadata, "spec": {**SPEC, "nodeName": node}}, "default")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return await self.client.patch(PODS, Key("default", name), {"status": status}, subresource="status")

    async def says(self, job: str, **status: Any) -> None:
        """As the controller writes it."""
        await self.client.patch(JOBS, Key("", job), {"status": status}, subresource="status")


def _owner(kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


@asynccontextmanager
async def on_stage(folder: Path, pods: int = 3) -> AsyncGenerator[Stage]:
    """Nodes a and b, and so many pods on the first."""
    async with engine_inside(folder, kinds=(JOB, RESERVATION, INSTANCE, MACHINE, POOL)) as inside:
        stage = Stage(Client(InsideTransport(inside.router, "test", user=ENGINE), "test"))
        for name in ("a", "b"):
            await stage.node(name)
        await stage.deployment(pods)
        for number in range(pods):
            await stage.pod(f"web-{number}", "a")
        yield stage
