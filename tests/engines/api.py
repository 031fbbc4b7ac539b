"""A small client of the Kubernetes API that hides nothing: every answer is a code, headers and a body to check."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from tests.engines.engine import Engine
from tests.engines.processes import client_context
from tests.engines.resources import Resource
from tests.engines.watching import Watch

Json = dict[str, Any]
JSON = "application/json"
PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_PATIENCE = aiohttp.ClientTimeout(total=30)


@dataclass(frozen=True)
class Reply:
    code: int
    headers: Mapping[str, str]
    raw: bytes
    warnings: list[str]

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.raw)

    @property
    def ok(self) -> Json:
        """The body of an answer that must be a success."""
        assert self.code in (200, 201, 202), f"{self.code}: {self.raw[:2000].decode(errors='replace')}"
        return self.body

    def refused(self, code: int, reason: str) -> Json:
        """The details of an answer that must be this refusal; the message is kept for the test to look into."""
        body = self.body
        told = (self.code, *(body.get(field) for field in ("kind", "apiVersion", "status", "code")), body.get("reason", ""))
        assert told == (code, "Status", "v1", "Failure", code, reason), body
        return body.get("details", {})

    @property
    def message(self) -> str:
        return self.body["message"]

    @property
    def items(self) -> list[Json]:
        return self.ok["items"]

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.items]

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Reason and field of every cause of a refusal."""
        return [(cause["reason"], cause.get("field", "")) for cause in self.body["details"]["causes"]]


class Api:
    def __init__(self, engine: Engine, session: aiohttp.ClientSession) -> None:
        self.engine = engine
        self.session = session

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
        **params: Any,
    ) -> Reply:
        """`body` is encoded unless it is bytes already; other keywords are the query."""
        data = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        sent = {"Accept": accept, **({"Content-Type": content_type} if data is not None else {}), **(headers or {})}
        url = self.engine.server + path
        async with self.session.request(method, url, data=data, headers=sent, params=_query(params), timeout=_PATIENCE) as answer:
            return Reply(answer.status, answer.headers, await answer.read(), answer.headers.getall("Warning", []))

    async def create(self, resource: Resource, body: Any, namespace: str = "", **params: Any) -> Reply:
        return await self.request("POST", resource.path(namespace), _typed(resource, body), **params)

    async def get(self, resource: Resource, name: str, namespace: str = "", subresource: str = "", **params: Any) -> Reply:
        return await self.request("GET", resource.path(namespace, quote(name), subresource), **params)

    async def list(self, resource: Resource, namespace: str = "", **params: Any) -> Reply:
        return await self.request("GET", resource.path(namespace), **params)

    async def update(self, resource: Resource, body: Json, namespace: str = "", subresource: str = "", **params: Any) -> Reply:
        path = resource.path(namespace, body["metadata"]["name"], subresource)
        return await self.request("PUT", path, _typed(resource, body), **params)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        subresource: str = "",
        *,
        kind: str = "merge",
        **params: Any,
    ) -> Reply:
        path = resource.path(namespace, name, subresource)
        return await self.request("PATCH", path, patch, content_type=PATCH_TYPES[kind], **params)

    async def delete(self, resource: Resource, name: str, namespace: str = "", options: Json | None = None, **params: Any) -> Reply:
        return await self.request("DELETE", resource.path(namespace, name), options, **params)

    async def delete_collection(self, resource: Resource, namespace: str = "", options: Json | None = None, **params: Any) -> Reply:
        return await self.request("DELETE", resource.path(namespace), options, **params)

    @asynccontextmanager
    async def watch(self, resource: Resource, namespace: str = "", *, accept: str = JSON, **params: Any) -> AsyncGenerator[Watch]:
        query = _query({"watch": True, **params})
        watch = Watch(self.session, self.engine.server + resource.path(namespace), accept, query)
        try:
            await watch.open()
            yield watch
        finally:
            watch.close()


@asynccontextmanager
async def connect(engine: Engine) -> AsyncGenerator[Api]:
    """As the administrator that the engine made."""
    connector = aiohttp.TCPConnector(ssl=client_context(engine), limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Api(engine, session)


def _typed(resource: Resource, body: Any) -> Any:
    """Tests need not repeat what the resource already says; what they do say is sent as it is."""
    if not isinstance(body, dict):
        return body
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


def _query(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in params.items()}
