"""Simulated nodes beside an engine, and on a real cluster our controllers and scheduler, too: `python -m tests.engines.herd ...`."""

import argparse
import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld
from herder.app.controllers_process import NAME, Process, Settings
from herder.controllers import CONTROLLERS
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.leases import Settings as LeaseSettings
from herder.nodes.fleet import Fleet
from herder.nodes.node import NodeSettings
from herder.scheduler import NAMES, scheduler
from tests.engines.engine import Engine
from tests.engines.processes import Child, wait_until_file

ROOT = Path(__file__).parents[2]
NODES = 4
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "500", "ephemeral-storage": "100Gi"}


def command(kubeconfig: Path, ready: Path, *, controllers: bool, nodes: int = NODES) -> list[str]:
    with_controllers = ["--controllers"] if controllers else []
    return [sys.executable, "-m", "tests.engines.herd", str(kubeconfig), str(ready), "--nodes", str(nodes), *with_controllers]


@contextmanager
def run_herd(engine: Engine, folder: Path, nodes: int = NODES) -> Generator[Child]:
    """`herder up` has its own controllers; a real cluster has none."""
    ready = folder / "herd.ready"
    ready.unlink(missing_ok=True)
    log = folder / "herd.log"
    child = Child(command(engine.kubeconfig, ready, controllers=engine.name != "embedded", nodes=nodes), log, folder=ROOT)
    try:
        wait_until_file(ready, child, 60)
        yield child
    finally:
        child.stop()


def settings(count: int) -> tuple[NodeSettings, ...]:
    """Tainted: pods of other tests shall not stray onto them."""
    return tuple(NodeSettings(name=f"herd-{number + 1}", tainted=True, capacity=CAPACITY) for number in range(count))


async def _run(kubeconfig: Path, ready: Path, nodes: int, *, controllers: bool) -> None:
    async with Client(connect(kubeconfig, None, NAME), NAME) as client, asyncio.TaskGroup() as group:
        await client.wait_until_ready()
        if controllers:
            starts = (*CONTROLLERS, scheduler(NAMES))
            group.create_task(Process(client, Settings(LeaseSettings()), starts).run(None))
        fleet = Fleet(client, RealWorld(), settings(nodes), CollectorRegistry())
        group.create_task(fleet.run())
        await fleet.registered.wait()
        ready.write_text("ready")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("ready", type=Path)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--controllers", action="store_true")
    given = parser.parse_args()
    asyncio.run(_run(given.kubeconfig, given.ready, given.nodes, controllers=given.controllers))


if __name__ == "__main__":
    main()
