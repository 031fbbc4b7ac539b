"""The webhook beside a real API server, in a process of its own: `python -m tests.engines.webhook ...`."""

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from herder.api.storage import storage_class
from herder.api.world import RealWorld
from herder.controllers.admission import AdviceAmongPools, AmongOthers
from herder.controllers.evictions import EvictionOfGuests
from herder.controllers.job_admission import JobAdmission
from herder.kube.cache import Caches
from herder.kube.client import Client
from herder.kube.connect import connect
from herder.kube.errors import AlreadyExists
from herder.kube.resources import NAMESPACES, STORAGE_CLASSES
from herder.kube.webhook import Registration, Settings, Webhook
from herder.kube.webhook.settings import NAMESPACE
from tests.engines.engine import Engine


def client_of(engine: Engine, agent: str = "herder-webhook") -> Client:
    return Client(connect(engine.kubeconfig, None, agent), "herder")


def command(engine: Engine, port: int, ready: Path) -> list[str]:
    return [sys.executable, "-m", "tests.engines.webhook", str(engine.kubeconfig), str(port), str(ready)]


async def _run(kubeconfig: Path, port: int, ready: Path) -> None:
    settings = Settings(host="127.0.0.1", port=port, url=f"https://127.0.0.1:{port}")
    async with Client(connect(kubeconfig, None, "herder-webhook"), "herder") as client, asyncio.TaskGroup() as tasks:
        with contextlib.suppress(AlreadyExists):
            await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        with contextlib.suppress(AlreadyExists):
            await client.create(STORAGE_CLASSES, storage_class())
        caches = Caches(client, RealWorld())
        asked = ((AmongOthers(client), JobAdmission(client, caches)), EvictionOfGuests(client), (AdviceAmongPools(caches),))
        webhook = Webhook(client, RealWorld(), settings, CollectorRegistry(), *asked)
        registration = Registration(client, RealWorld(), settings)
        tasks.create_task(caches.run())
        tasks.create_task(webhook.run())
        await webhook.ready.wait()
        tasks.create_task(registration.keep())
        await registration.registered.wait()
        ready.write_text("registered")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("ready", type=Path)
    given = parser.parse_args()
    asyncio.run(_run(given.kubeconfig, given.port, given.ready))


if __name__ == "__main__":
    main()
