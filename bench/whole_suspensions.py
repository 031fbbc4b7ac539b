"""A machine suspended and resumed as a person does it: a patch of `spec.suspended`, and a watch that shows what became of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from bench.load import Call, Client, connect
from bench.objects import NAMESPACE, namespace
from bench.program import herder_up

MACHINES = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
PATIENCE = 300.0
_MERGE = "application/merge-patch+json"


class WholeSuspension:
    def __init__(self, root: Path) -> None:
        self.root = root
        # From the patch until the watch shows each word, the last time.
        self.words: dict[str, float] = {}
        self._stack = AsyncExitStack()
        self._client: Client | None = None

    async def start(self, *options: str) -> None:
        up = self._stack.enter_context(herder_up(self.root, 1, "qemu", *options))
        self._client = await self._stack.enter_async_context(connect(up.side))
        await self.send("POST", "/api/v1/namespaces", namespace())

    async def send(self, method: str, path: str, body: bytes, kind: str = "application/json") -> Any:
        assert self._client is not None
        return await self._client.send(Call(method, path, body, kind))

    async def make(self, machine: dict[str, Any]) -> float:
        return await self._until(machine["metadata"]["name"], "Running", lambda: self.send("POST", MACHINES, _encoded(machine)))

    async def change(self, name: str, spec: dict[str, Any], word: str) -> float:
        """Seconds from the patch until the watch shows the word."""
        patch = _encoded({"spec": spec})
        return await self._until(name, word, lambda: self.send("PATCH", f"{MACHINES}/{name}", patch, _MERGE))

    async def suspend(self, name: str) -> float:
        return await self.change(name, {"suspended": True}, "Suspended")

    async def resume(self, name: str) -> float:
        return await self.change(name, {"suspended": None}, "Running")

    async def _until(self, name: str, word: str, act: Callable[[], Any]) -> float:
        assert self._client is not None
        watch = await self._client.stream(f"{MACHINES}?watch=1&fieldSelector=metadata.name%3D{name}")
        began, self.words = time.perf_counter(), {}
        acting = asyncio.create_task(act())
        async with asyncio.timeout(PATIENCE):
            async for line in watch.content:
                shown = msgspec.json.decode(line)["object"].get("status", {}).get("printableStatus", "")
                self.words.setdefault(shown, time.perf_counter() - began)
                if shown == word:
                    break
        watch.close()
        await acting
        return time.perf_counter() - began

    def consoles(self) -> list[Path]:
        return list(self.root.glob("data/nodes/*/guests/*/console.log"))

    async def end(self) -> None:
        await self._stack.aclose()


def _encoded(document: dict[str, Any]) -> bytes:
    return msgspec.json.encode(document)
