"""kube-scheduler, asked which nodes it finds feasible: it tells an extender, and the extender is ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.engines.engine import Engine
from tests.engines.kubernetes import find_programs
from tests.engines.processes import Child, free_ports


class Extender:
    """Writes down the first answer for each pod, and then refuses all nodes: nothing is ever bound."""

    def __init__(self) -> None:
        self.feasible: dict[str, list[str]] = {}

    async def filter(self, request: web.Request) -> web.Response:
        asked = await request.json()
        names: list[str] = asked["NodeNames"] or []
        self.feasible.setdefault(asked["Pod"]["metadata"]["name"], sorted(names))
        return web.json_response({"NodeNames": [], "FailedNodes": dict.fromkeys(names, "only asked")})


def configuration(engine: Engine, extender: str = "") -> dict[str, Any]:
    """All nodes are looked at, nobody is preempted."""
    asked = {"urlPrefix": extender, "filterVerb": "filter", "weight": 1, "nodeCacheCapable": True, "httpTimeout": "60s"}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(engine.kubeconfig), "qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": "default-scheduler", "plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}],
        "extenders": [asked] if extender else [],
    }


def start_scheduler(engine: Engine, folder: Path, document: dict[str, Any], port: int = 0) -> Child:
    config = folder / "scheduler.json"
    config.write_text(json.dumps(document))
    command = [str(find_programs() / "kube-scheduler"), f"--config={config}", f"--secure-port={port}", "--bind-address=127.0.0.1"]
    always = "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"
    return Child([*command, always, f"--cert-dir={folder}"], folder / "kube-scheduler.log")


@asynccontextmanager
async def asked_scheduler(engine: Engine, folder: Path) -> AsyncGenerator[Extender]:
    """Started when the cluster is as it shall be: it looks at nothing before it has seen everything."""
    extender = Extender()
    application = web.Application(client_max_size=1 << 26)
    application.router.add_post("/filter", extender.filter)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    (port,) = free_ports(1)
    await web.TCPSite(runner, "127.0.0.1", port).start()
    child = start_scheduler(engine, folder, configuration(engine, f"http://127.0.0.1:{port}"))
    try:
        yield extender
    finally:
        await asyncio.to_thread(child.stop)
        await runner.cleanup()
