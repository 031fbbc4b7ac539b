"""Our scheduler alone in a process of its own: python -m bench.placement_process KUBECONFIG"""

import asyncio
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.events import Recorder
from herder.kube.kit import Kit, run_controllers
from herder.scheduler import NAMES, scheduler


async def main(kubeconfig: Path) -> None:
    world, registry = RealWorld(), CollectorRegistry()
    async with Client(connect(kubeconfig, None, "herder-scheduler"), "herder-scheduler") as client:
        recorder = Recorder(client, world, "herder.dev/controllers", registry=registry)
        kit = Kit(client, Caches(client, world, registry), recorder, world, registry)
        async with asyncio.TaskGroup() as group:
            group.create_task(recorder.run())
            group.create_task(run_controllers(kit, (scheduler(NAMES),)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
