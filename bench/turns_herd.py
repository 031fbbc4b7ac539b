"""Simulated guests by the hundred, and the controllers that move them: ours, or some that ask again after a while as KubeVirt's."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.load import APPLY_PATCH, MERGE_PATCH, Call, Client, connect, each
from bench.objects import NAMESPACE, namespace
from bench.processes import cpu_seconds
from bench.program import herder_up
from tests.engines.processes import Child, free_ports

_OURS = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}"
MACHINES, INSTANCES = f"{_OURS}/virtualmachines", f"{_OURS}/virtualmachineinstances"
MIGRATIONS = f"{_OURS}/virtualmachineinstancemigrations"
_SETTINGS = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
ROOT = Path(__file__).parents[1]
HERDER, ASKING = "herder", "asking again after 5 s"
ASKS_AGAIN = {HERDER: 0.0, ASKING: 5.0}
PATIENCE = 600.0
_SETTLES = 1.0
_REQUESTS = re.compile(r'^herder_apiserver_requests_total\{code="[^"]*",resource="([^"]*)",verb="([^"]*)"\} (\S+)', re.MULTILINE)
_RECONCILES = re.compile(r'^herder_reconcile_total\{controller="migrations",result="[^"]*"\} (\S+)', re.MULTILINE)
_LEADS = re.compile(r"^leader_election_master_status\{[^}]*\} (\S+)", re.MULTILINE)
# By the clock, whatever else happens.
_PASSING = ("leases", "reviews")


@dataclass
class Controllers:
    child: Child
    port: int

    @property
    def cpu(self) -> float:
        return cpu_seconds([self.child.pid])

    async def reconciles(self) -> float:
        """Of migrations, since it leads."""
        return _sum(_RECONCILES, await self._metrics())

    async def settled(self) -> float:
        """How many there were, once it leads and no more come for a while."""
        known = -1.0
        while True:
            await asyncio.sleep(_SETTLES)
            self.child.check()
            with contextlib.suppress(aiohttp.ClientError):
                text = await self._metrics()
                now = _sum(_RECONCILES, text)
                if now == known and _sum(_LEADS, text):
                    return now
                known = now

    async def _metrics(self) -> str:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}/metrics") as answer:
            return await answer.text()


class Herd:
    def __init__(self, folder: Path, client: Client) -> None:
        self._folder = folder
        self.client = client

    @asynccontextmanager
    async def controllers(self, side: str) -> AsyncGenerator[Controllers]:
        (port,) = free_ports(1)
        kubeconfig = self._folder / "up" / "kubeconfig"
        command = [sys.executable, "-m", "bench.turns_process", str(kubeconfig), str(port), str(ASKS_AGAIN[side])]
        child = Child(command, self._folder / "controllers.log", folder=ROOT)
        try:
            yield Controllers(child, port)
        finally:
            child.stop(patience=30)

    async def settings(self, **migrations: Any) -> None:
        """Of the cluster."""
        document = _named("KubeVirt", "kubevirt", {"configuration": {"migrations": migrations}})
        await self.client.send(Call("PATCH", f"{_SETTINGS}?fieldManager=bench", document, APPLY_PATCH))

    async def make(self, names: list[str]) -> None:
        watch = await self.client.stream(f"{MACHINES}?watch=1")
        made = asyncio.create_task(each(lambda name: self.client.send(Call("POST", MACHINES, _machine(name))), names))
        running: set[str] = set()

        def all_run(thing: Any) -> bool:
            if thing.get("status", {}).get("printableStatus") == "Running":
                running.add(thing["metadata"]["name"])
            return len(running) >= len(names)

        await follow(watch, all_run)
        await made

    async def node(self, name: str, **spec: Any) -> None:
        await self.client.send(Call("PATCH", f"/api/v1/nodes/{name}", msgspec.json.encode({"spec": spec}), MERGE_PATCH))

    async def places(self) -> dict[str, str]:
        """Where each guest runs."""
        return {one["metadata"]["name"]: one["status"]["nodeName"] for one in (await self.list(INSTANCES))["items"]}

    async def list(self, path: str) -> Any:
        return msgspec.json.decode(await self.client.send(Call("GET", path)))

    async def at_rest(self) -> None:
        """Until nobody asks for anything any more: events are told a little later."""
        known = -1.0
        while (now := await self.requests()) > known:
            known = now
            await asyncio.sleep(2 * _SETTLES)

    async def requests(self) -> float:
        """All that the engine was asked, but for what is asked by the clock, and for our own questions."""
        found = _REQUESTS.findall((await self.client.send(Call("GET", "/metrics"))).decode())
        return sum(float(value) for resource, _, value in found if resource and not any(one in resource for one in _PASSING))


@asynccontextmanager
async def herd(folder: Path, nodes: int) -> AsyncGenerator[Herd]:
    with herder_up(folder / "up", nodes, "simulated", "--no-controllers") as up:
        async with connect(up.side) as client:
            await client.send(Call("POST", "/api/v1/namespaces", namespace()))
            yield Herd(folder, client)


def _sum(line: re.Pattern[str], text: str) -> float:
    return sum(float(one) for one in line.findall(text))


async def follow(watch: aiohttp.ClientResponse, is_over: Callable[[Any], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        async for line in watch.content:
            event: Any = msgspec.json.decode(line)
            if is_over(event["object"]):
                break
    watch.close()


def migration(name: str, guest: str) -> bytes:
    return _named("VirtualMachineInstanceMigration", name, {"vmiName": guest})


def _machine(name: str) -> bytes:
    # So that a node has room for all of them.
    domain = {"memory": {"guest": "32Mi"}, "resources": {"requests": {"cpu": "10m"}}}
    return _named("VirtualMachine", name, {"runStrategy": "Always", "template": {"spec": {"domain": domain}}})


def _named(kind: str, name: str, spec: dict[str, Any], version: str = "kubevirt.io/v1") -> bytes:
    return msgspec.json.encode({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
