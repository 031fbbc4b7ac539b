"""A move through the whole control plane: API server, controllers, scheduler and two nodes, as a person starts them.

It begins with the create of the Migration, and is over when a watch shows it as Succeeded.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.guest_moves import LOAD, MEMORY, PATIENCE
from bench.load import Call, Client, connect
from bench.objects import NAMESPACE, namespace
from bench.program import herder_up
from tools.guest.build import build

_OURS = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}"
MACHINES, MIGRATIONS = f"{_OURS}/virtualmachines", f"{_OURS}/virtualmachineinstancemigrations"
NODES = 2
_GUEST = "guest"


class WholeWay:
    def __init__(self, root: Path) -> None:
        self.root = root
        # Of each move, the seconds until each phase was seen.
        self.phases: list[dict[str, float]] = []
        self._numbers = itertools.count(1)
        self._stack = AsyncExitStack()
        self._client: Client | None = None

    async def start(self) -> None:
        # In this thread: who starts the program must not end before it.
        up = self._stack.enter_context(herder_up(self.root, NODES, "qemu"))
        client = self._client = await self._stack.enter_async_context(connect(up.side))
        await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        await client.send(Call("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", _kernel()))
        watch = await client.stream(f"{MACHINES}?watch=1")
        await client.send(Call("POST", MACHINES, _machine()))
        async with asyncio.timeout(PATIENCE):
            await _follow(watch, _GUEST, lambda status: status.get("printableStatus") == "Running")

    async def move(self) -> None:
        assert self._client is not None
        name, seen = f"move-{next(self._numbers)}", dict[str, float]()
        watch = await self._client.stream(f"{MIGRATIONS}?watch=1&fieldSelector=metadata.name%3D{name}")
        began = time.perf_counter()

        def is_over(status: dict[str, Any]) -> bool:
            phase = status.get("phase", "Pending")
            seen.setdefault(phase, time.perf_counter() - began)
            if phase == "Failed":
                raise RuntimeError(f"{name} failed: {status.get('reason')} {status.get('message')}")
            return phase == "Succeeded"

        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            group.create_task(self._client.send(Call("POST", MIGRATIONS, migration(name, _GUEST))))
            group.create_task(_follow(watch, name, is_over))
        self.phases.append(seen)

    async def end(self) -> None:
        await self._stack.aclose()


async def _follow(watch: aiohttp.ClientResponse, name: str, is_over: Any) -> None:
    async for line in watch.content:
        thing: Any = msgspec.json.decode(line)["object"]
        if thing["metadata"]["name"] == name and is_over(thing.get("status", {})):
            break
    watch.close()


def migration(name: str, guest: str) -> bytes:
    document = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"name": name},
        "spec": {"vmiName": guest},
    }
    return msgspec.json.encode(document)


def _kernel() -> bytes:
    content = base64.b64encode(build().read_bytes()).decode()
    return msgspec.json.encode({"metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}})


def _machine() -> bytes:
    boot = {"volume": {"name": "kernel", "kernelPath": "guest.elf"}, "kernelArgs": LOAD}
    domain = {"memory": {"guest": MEMORY}, "firmware": {"kernelBoot": boot}, "cpu": {"model": "qemu64"}}
    spec = {"domain": domain, "volumes": [{"name": "kernel", "configMap": {"name": "kernel"}}], "terminationGracePeriodSeconds": 5}
    document = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": _GUEST},
        "spec": {"runStrategy": "Always", "template": {"spec": spec}},
    }
    return msgspec.json.encode(document)
