"""Controllers, scheduler and simulated nodes beside an engine, in one process: `python -m tests.engines.herd ...`."""

import argparse
import asyncio
import functools
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld
from herder.app.controllers_process import NAME, Process, Settings
from herder.controllers import CONTROLLERS, EMBEDDED_ONLY
from herder.controllers.node_lifecycle import NODE_LIFECYCLE
from herder.controllers.pool import Pools
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.kit import Start
from herder.kube.leases import Settings as LeaseSettings
from herder.nodes.fleet import Fleet
from herder.nodes.node import NodeSettings
from herder.scheduler import NAMES, scheduler
from tests.engines.engine import Engine
from tests.engines.processes import Child, wait_until_file

ROOT = Path(__file__).parents[2]
NODES = 4
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "500", "ephemeral-storage": "100Gi"}


# Tests wait for what a pool shows. That it shows so at most once a second elsewhere is tested in tests/unit/controllers.
_SOON: dict[Start, Start] = {Pools.start: functools.partial(Pools.start, status_every=0.05)}
PARTS = ("all", "nodes", "controllers")


def command(engine: Engine, ready: Path, part: str = "all", nodes: int = NODES) -> list[str]:
    asked = [str(engine.kubeconfig), str(ready), "--nodes", str(nodes), "--part", part]
    return [sys.executable, "-m", "tests.engines.herd", *asked, *(["--embedded"] if engine.name == "embedded" else [])]


@contextmanager
def run_herd(engine: Engine, folder: Path, part: str = "all", nodes: int = NODES) -> Generator[Child]:
    ready = folder / f"herd-{part}.ready"
    ready.unlink(missing_ok=True)
    child = Child(command(engine, ready, part, nodes), folder / f"herd-{part}.log", folder=ROOT)
    try:
        wait_until_file(ready, child, 60)
        yield child
    finally:
        child.stop()


def settings(count: int) -> tuple[NodeSettings, ...]:
    """Tainted: pods of other tests shall not stray onto them."""
    return tuple(NodeSettings(name=f"herd-{number + 1}", tainted=True, capacity=CAPACITY) for number in range(count))


async def _run(kubeconfig: Path, ready: Path, part: str, nodes: int, embedded: bool) -> None:
    async with Client(connect(kubeconfig, None, NAME), NAME) as client, asyncio.TaskGroup() as group:
        await client.wait_until_ready()
        if part != "nodes":
            # Always of the same name: one that was killed leads again at once.
            starts = (
                *(_SOON.get(start, start) for start in CONTROLLERS),
                *((*EMBEDDED_ONLY, *NODE_LIFECYCLE) if embedded else ()),
                scheduler(NAMES),
            )
            process = Process(client, Settings(LeaseSettings(), identity="herd"), starts)
            group.create_task(process.run(None))
        if part != "controllers":
            fleet = Fleet(client, RealWorld(), settings(nodes), CollectorRegistry())
            group.create_task(fleet.run())
            await fleet.registered.wait()
        ready.write_text("ready")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("ready", type=Path)
    parser.add_argument("--part", choices=PARTS, default=PARTS[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--embedded", action="store_true", help="with what a real cluster has already")
    given = parser.parse_args()
    asyncio.run(_run(given.kubeconfig, given.ready, given.part, given.nodes, given.embedded))


if __name__ == "__main__":
    main()
