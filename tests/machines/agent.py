"""A node that really fills volumes, in a process of its own, so that it can be killed: `python -m tests.machines.agent ...`."""

import argparse
import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry

from herder.api import labels
from herder.api.world import RealWorld
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.nodes.agent import NodeAgent, Parts
from herder.nodes.guests import NoVolumes
from herder.nodes.imports import Imports, ImportSettings, StorageFolder, Verification
from herder.nodes.imports.mounted import FromCluster
from herder.nodes.node import NodeSettings
from herder.nodes.runtimes.simulated import Network, SimulatedRuntime
from tests.behaviour.test_node_agents import kubeconfig_of
from tests.engines.engine import Engine
from tests.engines.processes import Child, wait_until_file
from tests.unit.nodes.imports.site import NoGuests

ROOT = Path(__file__).parents[2]


@contextmanager
def run_agent(engine: Engine, name: str, folder: Path, *, allow_local: bool = True) -> Generator[Child]:
    """As the node that it is, and no more. Its storage has its name; what it stores is in `folder`/storage."""
    ready = folder / "agent.ready"
    ready.unlink(missing_ok=True)
    local = ["--allow-local-imports"] if allow_local else []
    kubeconfig = kubeconfig_of(engine, folder, name)
    command = [sys.executable, "-m", "tests.machines.agent", str(kubeconfig), name, str(folder), *local]
    child = Child(command, folder / "agent.log", folder=ROOT)
    try:
        wait_until_file(ready, child, 60)
        yield child
    finally:
        child.stop()


async def _run(kubeconfig: Path, name: str, folder: Path, allow_local: bool) -> None:
    world = RealWorld()
    # Its guests are simulated, but it belongs to no fleet.
    settings = NodeSettings(name=name, storage=name, tainted=True, labels={labels.RUNTIME: "importing"})
    async with Client(connect(kubeconfig, None, "herder-agent"), "herder-agent") as client, asyncio.TaskGroup() as group:
        storage = StorageFolder(folder / "storage")
        filling = ImportSettings(allow_local=allow_local)
        imports = Imports(storage, world, filling, FromCluster(client), Verification(client), NoGuests())
        runtime = SimulatedRuntime(name, world, Network(), version="1")
        agent = NodeAgent(client, world, settings, runtime, Parts(NoVolumes(), imports=imports), CollectorRegistry())
        group.create_task(agent.run())
        await agent.registered.wait()
        (folder / "agent.ready").write_text("ready")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--allow-local-imports", action="store_true")
    given = parser.parse_args()
    asyncio.run(_run(given.kubeconfig, given.name, given.folder, given.allow_local_imports))


if __name__ == "__main__":
    main()
