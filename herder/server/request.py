"""A request as the engine sees it, whether it came by TLS, by a unix socket or from inside the process; and its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from herder.api.integers import parse_int64
from herder.api.problems import Problem, invalid, not_supported, too_long
from herder.server.status import bad_request, invalid_options

LONGEST_MANAGER = 128
FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
# kube-apiserver reads no more than this of a body.
BODY_LIMIT = 3 * 1024 * 1024


class User(msgspec.Struct, frozen=True):
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    # What else is known: the credential that was shown, the pod that it was made for.
    extra: Mapping[str, tuple[str, ...]] = {}


AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
MASTERS = "system:masters"
# The engine's own housekeeping: garbage collection, namespaces, CRDs.
ENGINE = User("system:herder", (MASTERS, AUTHENTICATED))


class Request(msgspec.Struct, kw_only=True):
    method: str
    path: str
    query: dict[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""
    user: User = ANONYMOUS
    # Came in by a socket that only our own processes can reach.
    internal: bool = False
    # For the metrics, once it is known.
    verb: str = ""
    resource: str = ""
    # Whether what is asked for can be shown as a table.
    tables: bool = True
    # What to tell the client beside the answer (kubectl prints it).
    warnings: list[str] = []

    def flag(self, name: str) -> bool:
        return self.choice(name) is True

    def choice(self, name: str) -> bool | None:
        """None where nothing is said. Whatever is said is a yes, be it nothing but the name, unless it is a clear no."""
        value = self.query.get(name)
        return None if value is None else value != "0" and value.lower() != "false"

    def number(self, name: str) -> int | None:
        text = self.query.get(name)
        if text is None:
            return None
        number = parse_int64(text)
        if number is None:
            raise bad_request(f"{name}: Invalid value: {text[:40]!r}: must be a whole number")
        return number

    @property
    def dry_run(self) -> bool:
        value = self.query.get("dryRun")
        if value not in (None, "All"):
            raise invalid_options(self.options_kind, [not_supported("dryRun", [value], ("All",))])
        return value == "All"

    @property
    def manager(self) -> str:
        """Who is written into managedFields: what the client says, or the first word of its User-Agent."""
        named = self.query.get("fieldManager")
        if named:
            if problems := self._manager_problems(named):
                raise invalid_options(self.options_kind, problems)
            return named
        agent = self.headers.get("User-Agent") or "unknown"
        return agent.split("/", 1)[0][:LONGEST_MANAGER]

    def _manager_problems(self, name: str) -> list[Problem]:
        problems: list[Problem] = []
        if len(name.encode()) > LONGEST_MANAGER:
            problems.append(too_long("fieldManager", LONGEST_MANAGER))
        if not name.isprintable():
            problems.append(invalid("fieldManager", name, "should only contain printable characters"))
        return problems

    def check_write_options(self) -> None:
        """All that is wrong with the query of a write, before its body is looked at."""
        problems = self._manager_problems(self.query.get("fieldManager", ""))
        if (dry_run := self.query.get("dryRun")) not in (None, "All"):
            problems.append(not_supported("dryRun", [dry_run], ("All",)))
        if (mode := self.query.get("fieldValidation", "")) not in FIELD_VALIDATION:
            problems.append(not_supported("fieldValidation", mode, FIELD_VALIDATION))
        if problems:
            raise invalid_options(self.options_kind, problems)

    @property
    def options_kind(self) -> str:
        return {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}.get(self.method, "DeleteOptions")


class Response(msgspec.Struct):
    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = {}
    warnings: list[str] = []


class Stream(msgspec.Struct):
    """An answer without an end: chunks as they come, until either side has enough."""

    chunks: Callable[[], AsyncIterator[bytes]]
    content_type: str = "application/json"
    headers: dict[str, str] = {}
    warnings: list[str] = []
    # Gives back what the answer holds, also where not one chunk of it was asked for.
    close: Callable[[], None] = lambda: None


class Upgrade(msgspec.Struct):
    """The connection becomes a WebSocket: `serve` takes the request as the HTTP server knows it, and answers it to the end."""

    serve: Callable[[Any], Awaitable[Any]]
    warnings: list[str] = []


Answer = Response | Stream | Upgrade


class Target(msgspec.Struct, frozen=True):
    """What a resource path points at."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_query(text: str) -> dict[str, str]:
    """Of what is said several times the first counts."""
    return dict(reversed(parse_qsl(text, keep_blank_values=True)))


@lru_cache(maxsize=4096)
def parse_target(path: str) -> Target | None:
    """None when the path is not one of a resource (`/version`, `/apis`, `/api/v1`, ...)."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        return _target("", parts[1], parts[2:])
    if parts[0] == "apis" and len(parts) > 3:
        return _target(parts[1], parts[2], parts[3:])
    return None


def _target(group: str, version: str, rest: list[str]) -> Target | None:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or "" in rest:
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    return Target(group, version, rest[0], namespace, name, subresource)
