"""What an API server serves, asked for kind by kind: for objects of kinds that we have no view of.

Whoever names a kind may have made it up: only groups that the server lists are asked about, so that any number of made-up ones
costs one request in some seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from herder.api import core
from herder.kube.client import Client
from herder.kube.errors import KubeError, Unreadable, error_from
from herder.kube.resources import Resource
from herder.kube.transport import Call

# How long an answer is believed: a CRD that comes, goes or changes is noticed within this time.
BELIEVED = 60.0
# What is looked for and not there may have come since: then it is asked for again, but not more often than this.
MISSED = 5.0
# How soon one that failed is asked again: behind a group may be a server of its own, which is away.
AGAIN = 10.0
GROUPS = "/apis"
PATIENCE = 10.0


class Served(msgspec.Struct, frozen=True):
    """One kind, as the server has it. Its view is that of its scale."""

    resource: Resource[core.Scale]
    scalable: bool


class _Version(msgspec.Struct, frozen=True):
    version: str = ""


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    versions: tuple[_Version, ...] = ()
    preferred_version: _Version = _Version()


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


class _Entry(msgspec.Struct, frozen=True):
    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _Entries(msgspec.Struct, frozen=True):
    resources: tuple[_Entry, ...] = ()


Kinds = dict[str, Served]
_CORE = _Group("", (_Version("v1"),), _Version("v1"))


class _Answer(msgspec.Struct, frozen=True):
    """What was said, or why nothing was, and when."""

    at: float
    value: dict[str, Any] | KubeError

    def is_old(self, now: float, name: str) -> bool:
        if isinstance(self.value, KubeError):
            return now - self.at >= AGAIN
        return now - self.at >= (BELIEVED if name in self.value else MISSED)


class Discovery:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._clock = asyncio.get_running_loop().time
        # By path; no more of them than the server has groups and versions.
        self._answers: dict[str, _Answer] = {}
        # For each path one asks, and the others wait for the same answer.
        self._asking: dict[str, asyncio.Lock] = {}

    async def find(self, group: str, version: str, kind: str) -> Served | None:
        """The kind, in this version or else in the one that the server prefers; None where it is not served. Raises KubeError
        where that could not be found out."""
        known = _CORE if not group else await self._group(group)
        if known is None:
            return None
        versions = [one.version for one in known.versions]
        chosen = version if version in versions else known.preferred_version.version
        return await self._kind(group, chosen, kind) if chosen in versions else None

    def forget(self, group: str) -> None:
        """What was said of a group is not so any more."""
        for path in [path for path in self._answers if path == GROUPS or path.startswith(f"{GROUPS}/{group}/")]:
            del self._answers[path]

    async def _group(self, name: str) -> _Group | None:
        return (await self._kept(GROUPS, _Groups, lambda said: {group.name: group for group in said.groups}, name)).get(name)

    async def _kind(self, group: str, version: str, kind: str) -> Served | None:
        path = f"{GROUPS}/{group}/{version}" if group else f"/api/{version}"
        return (await self._kept(path, _Entries, lambda said: _kinds_of(group, version, said.resources), kind)).get(kind)

    async def _kept(self, path: str, answer: type[Any], read: Callable[[Any], dict[str, Any]], name: str) -> dict[str, Any]:
        """By name; `name` is the one that somebody looks for."""
        async with self._asking.setdefault(path, asyncio.Lock()):
            known = self._answers.get(path)
            if known is None or known.is_old(self._clock(), name):
                try:
                    value: dict[str, Any] | KubeError = read(await self._ask(path, answer))
                except KubeError as error:
                    value = error
                known = self._answers[path] = _Answer(self._clock(), value)
        if isinstance(known.value, KubeError):
            raise known.value.with_traceback(None)
        return known.value

    async def _ask(self, path: str, answer: type[Any]) -> Any:
        reply = await self._client.transport.send(Call("GET", path, patience=PATIENCE))
        if reply.status >= 400:
            raise error_from(reply.status, reply.body)
        try:
            return msgspec.json.decode(reply.body, type=answer)
        except msgspec.MsgspecError as error:
            raise Unreadable(f"what the API server says about {path} cannot be read: {error}") from error


def _kinds_of(group: str, version: str, entries: tuple[_Entry, ...]) -> Kinds:
    names = {entry.name for entry in entries}
    found: Kinds = {}
    for entry in entries:
        if "/" not in entry.name and entry.kind not in found:
            resource = Resource(
                group=group, version=version, plural=entry.name, kind=entry.kind, namespaced=entry.namespaced, view=core.Scale
            )
            found[entry.kind] = Served(resource, f"{entry.name}/scale" in names)
    return found
