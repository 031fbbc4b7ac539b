"""A small client of a Kubernetes API: enough for an agent to keep its own objects. Over a unix socket, for now."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp
import msgspec

LOOK_AGAIN = 0.05
MERGE_PATCH = "application/merge-patch+json"
Document = dict[str, Any]


class ApiStatusError(Exception):
    """The API said no. `code` and `reason` are for programs, the text for people."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class Client:
    def __init__(self, socket: Path, manager: str) -> None:
        self._session = aiohttp.ClientSession(
            "http://herder", connector=aiohttp.UnixConnector(str(socket)), headers={"User-Agent": f"{manager}/1"}
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._session.close()

    async def wait_until_ready(self) -> None:
        """For those who start together with the server."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                async with self._session.get("/readyz") as response:
                    if response.status == 200:
                        return
            await asyncio.sleep(LOOK_AGAIN)

    async def create(self, path: str, document: Document) -> Document:
        return await self._send("POST", path, document, "application/json")

    async def patch(self, path: str, patch: Document) -> Document:
        return await self._send("PATCH", path, patch, MERGE_PATCH)

    async def _send(self, method: str, path: str, document: Document, content_type: str) -> Document:
        headers = {"Content-Type": content_type}
        async with self._session.request(method, path, data=msgspec.json.encode(document), headers=headers) as response:
            answer: Document = msgspec.json.decode(await response.read())
        if response.status >= 400:
            raise ApiStatusError(response.status, answer.get("reason", ""), answer.get("message", ""))
        return answer
