"""All QEMU nodes of one machine: an agent for each, its share of the room, and one storage for all."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Sequence
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from herder.api.world import World
from herder.kube.client import Client
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.disk_space import DiskSpace
from herder.nodes.endpoint import Endpoint
from herder.nodes.imports import FromCluster, Imports, ImportSettings, StorageFolder, Verification
from herder.nodes.moving import DiskNotes, Link
from herder.nodes.moving.unix import UnixLink
from herder.nodes.node import NodeSettings
from herder.nodes.runtimes.qemu import QemuRuntime, RunAs, Wire, ask
from herder.nodes.volumes import NodeVolumes

PODS_PER_NODE = 110
# The rest is for the machine itself and for us.
SHARE_OF_MEMORY = 0.8
KVM = Path("/dev/kvm")


class MigrationNetwork(msgspec.Struct, frozen=True):
    """How the agent and the guests of one node reach those of other machines."""

    link: Link
    wire: Wire


class LocalNodes:
    """Guests live on when this process dies, and are found again; told to end in order, it ends them first."""

    def __init__(
        self,
        nodes: Sequence[tuple[Client, NodeSettings]],
        world: World,
        folder: Path,
        program: str,
        endpoint: Endpoint | None,
        imports: ImportSettings,
        registry: CollectorRegistry,
        network: MigrationNetwork | None = None,
    ) -> None:
        """Each node with the client that is it. Several have no network: their agents reach each other, and nobody elsewhere."""
        self._network = network
        self._registry = registry
        self._endpoint = endpoint
        self._imports = imports
        self._nodes = nodes
        self._world = world
        self._folder = folder
        self._program = program
        self._runtimes: list[QemuRuntime] = []
        self.registered = asyncio.Event()

    async def run(self) -> None:
        nodes, storage = self._folder / "nodes", self._folder / "volumes"
        for folder in (nodes, storage):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        run_as = unprivileged()
        facts = await ask(self._program, run_as, nodes / "qemu.json")
        space = DiskSpace(storage, self._imports.reserve)
        agents: list[NodeAgent] = []
        for client, settings in self._nodes:
            wire = self._network.wire if self._network is not None else None
            runtime = QemuRuntime(nodes / settings.name, self._world, facts, run_as, wire)
            self._runtimes.append(runtime)
            settings = msgspec.structs.replace(settings, port=self._endpoint.port if self._endpoint is not None else 0)
            filled = StorageFolder(storage, space)
            imports = Imports(filled, self._world, self._imports, FromCluster(client), Verification(client), runtime)
            parts = Parts(
                volumes=NodeVolumes(client, StorageFolder(storage, space)),
                imports=imports,
                endpoint=self._endpoint,
                notes=DiskNotes(nodes / settings.name / "moves"),
                link=self._network.link if self._network is not None else UnixLink(nodes / settings.name / "agent.socket"),
                space=space,
            )
            agents.append(NodeAgent(client, self._world, settings, runtime, parts, self._registry))
        async with asyncio.TaskGroup() as group:
            group.create_task(space.watch(self._tell_of_room))
            for agent in agents:
                group.create_task(agent.run())
            for agent in agents:
                await agent.registered.wait()
            self.registered.set()

    async def _tell_of_room(self, short: bool, back: bool) -> None:
        for runtime in self._runtimes:
            await runtime.room(short=short, back=back)

    def end_guests_on_close(self, patience: float) -> None:
        for runtime in self._runtimes:
            runtime.end_guests_on_close(patience)


def unprivileged() -> RunAs | None:
    """QEMU never runs as root: where we do, it becomes nobody, in the group that may use KVM."""
    if os.geteuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody")
    group = KVM.stat().st_gid if KVM.exists() else 0
    return RunAs(nobody.pw_uid, nobody.pw_gid, (group,) if group else ())


def share(settings: NodeSettings, nodes: int, storage: str) -> NodeSettings:
    """Of this machine's processors and memory, the same for each of its nodes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    capacity = {
        "cpu": f"{1000 * (os.cpu_count() or 1) // nodes}m",
        "memory": f"{int(memory * SHARE_OF_MEMORY) // nodes >> 20}Mi",
        "pods": str(PODS_PER_NODE),
    }
    return msgspec.structs.replace(settings, capacity=capacity, storage=storage)
