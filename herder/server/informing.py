"""Everything that is not an object: health, version, discovery, OpenAPI, metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib.metadata import version

import msgspec

from herder.server import status
from herder.server.accept import JSON, YAML, Accepted, first_of, parse_discovery_accept, parse_plain_accept
from herder.server.discovery import Discovery, Document, document
from herder.server.engine import Engine
from herder.server.exposition import ENGINE, merge
from herder.server.metrics import Metrics
from herder.server.openapi import OpenApi
from herder.server.presenting import body
from herder.server.request import Answer, Request, Response
from herder.server.store import Room

# The release whose behaviour this engine is checked against; clients choose what to send by it.
KUBERNETES = ("1", "36", "v1.36.3")

# kubectl still looks here for kinds that have no v3 document (a List of things), and reads protobuf only. A document without
# a single kind is enough: it skips what it does not find, and the server checks every field anyway.
OPENAPI_V2_PROTOBUF = tuple(f"application/com.github.proto-openapi.spec.v2{sign}v1.0+protobuf" for sign in ".@")
OPENAPI_V2 = Document(b"\n\x032.0\x12\x0f\n\x06herder\x12\x05v1.36", "herder-v2", OPENAPI_V2_PROTOBUF[0])
JSON_ONLY = (JSON,)
PLAIN = "text/plain; charset=utf-8"
HEALTH = ("healthz", "livez", "readyz")
Check = Callable[[], Awaitable[str]]


class Information:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._discovery: Discovery | None = None
        self._openapi: OpenApi | None = None
        self.metrics = Metrics(engine)
        # What the other processes of this engine's supervisor count; None for one that does not answer.
        self.other_processes: Callable[[], Awaitable[Mapping[str, bytes | None]]] = _no_others
        # What has to be so before the engine is ready, by name. Each says why not, which is empty where it is.
        self.ready_checks: dict[str, Check] = {"store": Room(engine.store).problem}
        engine.registry.on_change(self._forget)

    def _forget(self) -> None:
        self._discovery = None
        if self._openapi is not None:
            self._openapi.update(self._engine.registry.resources())

    @property
    def discovery(self) -> Discovery:
        if self._discovery is None:
            self._discovery = Discovery(self._engine.registry.resources())
        return self._discovery

    @property
    def openapi(self) -> OpenApi:
        if self._openapi is None:
            self._openapi = OpenApi(self._engine.registry.resources())
        return self._openapi

    async def answer(self, request: Request) -> Answer:
        """Whether there is anything at all comes before what may be done with it, and in which form it is given."""
        found = await self._found(request.path.rstrip("/") or "/", request)
        if found is None:
            raise status.no_such_path()
        if request.method not in ("GET", "HEAD"):
            raise status.method_not_allowed()
        return _answer(request, found) if isinstance(found, Document) else found

    async def _found(self, path: str, request: Request) -> Response | Document | None:
        if (parts := path.strip("/").split("/"))[0] in HEALTH:
            return await self._health(parts, request.query)
        if path == "/version":
            return _plain(request, document(version_info()), JSON_ONLY)
        if path == "/metrics":
            return Response(200, await self._exposition(), "text/plain; version=0.0.4; charset=utf-8")
        if path == "/":
            return Response(200, msgspec.json.encode({"paths": self._paths()}))
        return self._openapi_document(path, request) if path.startswith("/openapi") else self._discovery_document(path, request)

    async def _exposition(self) -> bytes:
        # Last our own: whoever was waited for, it is as things are now.
        others = await self.other_processes()
        return merge({ENGINE: self.metrics.text(), **others})

    async def _health(self, parts: list[str], query: Mapping[str, str]) -> Response:
        """As kube-apiserver: all checks, without those that are excluded, or the one that the path names."""
        name, *rest = parts
        checks = {"ping": _ping, **(self.ready_checks if name == "readyz" else {})}
        if rest and (len(rest) > 1 or rest[0] not in checks):
            raise status.no_such_path()
        chosen = [rest[0]] if rest else [one for one in checks if one != query.get("exclude")]
        problems = {one: await checks[one]() for one in chosen}
        if not any(problems.values()) and "verbose" not in query:
            return Response(200, b"ok", PLAIN)
        lines = [f"[-]{one} failed: {why}\n" if why else f"[+]{one} ok\n" for one, why in problems.items()]
        failed = any(problems.values())
        lines.append(f"{name} check {'failed' if failed else 'passed'}\n")
        return Response(503 if failed else 200, "".join(lines).encode(), PLAIN)

    def _paths(self) -> list[str]:
        found = {"/api", "/apis", "/openapi/v3", "/version", "/metrics", *(f"/{name}" for name in HEALTH)}
        for resource in self._engine.registry.resources():
            found.add(f"/apis/{resource.group_version}" if resource.group else f"/api/{resource.version}")
        return sorted(found)

    def _openapi_document(self, path: str, request: Request) -> Document | None:
        if path == "/openapi/v2":
            return self._openapi_v2(request)
        if path == "/openapi/v3":
            return self.openapi.index()
        found = self.openapi.document(path.removeprefix("/openapi/v3/")) if path.startswith("/openapi/v3/") else None
        return _plain(request, found, JSON_ONLY)

    def _openapi_v2(self, request: Request) -> Document:
        chosen = first_of(request.headers.get("Accept", ""), ("application/json", *OPENAPI_V2_PROTOBUF))
        if chosen is None:
            raise status.not_acceptable(("application/json", OPENAPI_V2.content_type))
        return self.openapi.version_2() if chosen == "application/json" else OPENAPI_V2

    def _discovery_document(self, path: str, request: Request) -> Document | None:
        parts = path.strip("/").split("/")
        match parts:
            case ["api"] | ["apis"]:
                return self._root(parts[0], request)
            case ["api", version]:
                return _plain(request, self.discovery.api_resources("", version))
            case ["apis", group]:
                return _plain(request, self.discovery.api_group(group))
            case ["apis", group, version]:
                return _plain(request, self.discovery.api_resources(group, version))
            case _:
                return None

    def _root(self, which: str, request: Request) -> Document:
        wanted = parse_discovery_accept(request.headers.get("Accept", ""))
        if wanted is not None and wanted.as_kind:
            return self.discovery.aggregated_core() if which == "api" else self.discovery.aggregated_groups()
        found = self.discovery.api_versions() if which == "api" else self.discovery.api_groups()
        return _in_form(wanted, found)


def _plain(request: Request, found: Document | None, forms: tuple[str, ...] = (JSON, YAML)) -> Document | None:
    """A document that is never shown as another kind, in the form that the client wants; None stays None."""
    if found is None:
        return None
    wanted = parse_plain_accept(request.headers.get("Accept", ""))
    return _in_form(wanted if wanted is None or wanted.media_type in forms else None, found)


def _in_form(wanted: Accepted | None, found: Document) -> Document:
    if wanted is None:
        raise status.not_acceptable(("application/json", "application/yaml"))
    if wanted.media_type == JSON:
        return found
    shown = body(wanted, found.body)
    return Document(shown.body, found.etag, shown.content_type)


async def _ping() -> str:
    return ""


async def _no_others() -> Mapping[str, bytes | None]:
    return {}


def _answer(request: Request, document: Document) -> Response:
    headers = {"ETag": f'"{document.etag}"', "Vary": "Accept"}
    if request.headers.get("If-None-Match", "").strip('"') == document.etag:
        return Response(304, b"", document.content_type, headers)
    return Response(200, document.body, document.content_type, headers)


def version_info() -> dict[str, str]:
    major, minor, release = KUBERNETES
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{release}+herder-{_installed()}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "cpython",
        "platform": "linux/amd64",
    }


@cache
def _installed() -> str:
    """Once: it is looked for on the disk, and clients ask for the version often."""
    return version("herder")
