"""The webhook beside a real API server, in a process of its own: `python -m tests.engines.webhook ...`."""

import argparse
import asyncio
import contextlib
import ssl
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from herder.api.world import RealWorld
from herder.kube.client import Client
from herder.kube.errors import AlreadyExists
from herder.kube.http import HttpTransport
from herder.kube.resources import NAMESPACES
from herder.kube.webhook import Registration, Settings, Webhook
from herder.kube.webhook.settings import NAMESPACE
from tests.engines.engine import Engine


def client_of(engine: Engine, agent: str = "herder-webhook") -> Client:
    tls = ssl.create_default_context(cafile=str(engine.ca))
    tls.load_cert_chain(engine.client_certificate, engine.client_key)
    return Client(HttpTransport.over_tls(engine.server, agent, tls), "herder")


def command(engine: Engine, port: int, ready: Path) -> list[str]:
    files = [str(engine.ca), str(engine.client_certificate), str(engine.client_key)]
    return [sys.executable, "-m", "tests.engines.webhook", engine.server, *files, str(port), str(ready)]


async def _run(engine: Engine, port: int, ready: Path) -> None:
    settings = Settings(host="127.0.0.1", port=port, url=f"https://127.0.0.1:{port}")
    async with client_of(engine) as client, asyncio.TaskGroup() as tasks:
        with contextlib.suppress(AlreadyExists):
            await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        webhook = Webhook(client, RealWorld(), settings, CollectorRegistry())
        registration = Registration(client, RealWorld(), settings)
        tasks.create_task(webhook.run())
        await webhook.ready.wait()
        tasks.create_task(registration.keep())
        await registration.registered.wait()
        ready.write_text("registered")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    for name in ("ca", "certificate", "key"):
        parser.add_argument(name, type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("ready", type=Path)
    given = parser.parse_args()
    engine = Engine("kubernetes", given.server, given.ca, given.certificate, given.key, Path())
    asyncio.run(_run(engine, given.port, given.ready))


if __name__ == "__main__":
    main()
