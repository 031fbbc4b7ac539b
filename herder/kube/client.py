"""A client of a Kubernetes API. It reads typed views, and writes patches: there is no way to put a whole object back."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

import msgspec
import structlog

from herder.api.meta import Identified, ListMeta
from herder.kube.errors import KubeError, NotFound, Unreachable, Unreadable, error_from
from herder.kube.resources import Key, Resource
from herder.kube.transport import Call, Reply, Transport

LOOK_AGAIN = 0.05
PAGE = 500
# Warnings that name objects differ without end.
MOST_WARNINGS = 1000
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
Document = dict[str, Any]
Propagation = Literal["Background", "Foreground", "Orphan"]
V = TypeVar("V", bound=Identified)
log = structlog.get_logger()


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a kind: all of them, unless it says less."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        asked = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in asked.items() if value}


EVERYTHING = Selection()


class Page(msgspec.Struct, frozen=True):
    """Some objects as raw bytes, and how to go on."""

    items: list[msgspec.Raw] = []
    metadata: ListMeta = ListMeta()


class WatchEvent(msgspec.Struct, frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object as raw bytes."""

    type: str
    object: msgspec.Raw


class Listing(msgspec.Struct, Generic[V], frozen=True):
    items: list[V]
    resource_version: str


_page = msgspec.json.Decoder(Page)
_event = msgspec.json.Decoder(WatchEvent)
_TYPE = b'{"type":"'
_OBJECT = b'","object":'


class Client:
    def __init__(self, transport: Transport, manager: str) -> None:
        """`manager` is the name under which our fields stand in managedFields."""
        self.transport = transport
        self.manager = manager
        self._warned: set[str] = set()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.transport.close()

    async def wait_until_ready(self) -> None:
        """For those who start together with the server. One whose disk is full can be read, and guests have to be looked after."""
        while True:
            with contextlib.suppress(Unreachable):
                reply = await self.transport.send(Call("GET", "/readyz", query={"exclude": "store"}, accept="*/*"))
                if reply.status == 200:
                    return
            await asyncio.sleep(LOOK_AGAIN)

    # Reads.

    async def get(self, resource: Resource[V], key: Key, *, subresource: str = "") -> V:
        """Live, not from a cache."""
        return _decode(resource, await self.get_raw(resource, key, subresource=subresource))

    async def get_raw(self, resource: Resource[Any], key: Key, *, subresource: str = "") -> bytes:
        """As the server sent it, with what no view reads."""
        return (await self._ask(Call("GET", _path(resource, key, subresource)))).body

    async def find(self, resource: Resource[V], key: Key) -> V | None:
        """The same; None where there is none."""
        try:
            return await self.get(resource, key)
        except NotFound:
            return None

    async def list(self, resource: Resource[V], selection: Selection = EVERYTHING) -> Listing[V]:
        """Live, all pages, typed. For what has to be kept up to date there is the cache."""
        items: list[V] = []
        version = ""
        async for page in self.pages(resource, selection):
            items += [_decode(resource, raw) for raw in page.items]
            version = page.metadata.resource_version or ""
        return Listing(items, version)

    async def pages(
        self, resource: Resource[Any], selection: Selection = EVERYTHING, *, resource_version: str = "", limit: int = PAGE
    ) -> AsyncGenerator[Page]:
        """Raw. With a resourceVersion: a state at least as new as that one; "0" is whatever the server has at hand."""
        query = {**selection.query(), "limit": str(limit)}
        if resource_version:
            query |= {"resourceVersion": resource_version, "resourceVersionMatch": "NotOlderThan"}
        while True:
            page = _read_page(await self._ask(Call("GET", resource.path(selection.namespace), query, patience=None)))
            yield page
            if not page.metadata.continue_:
                return
            query = {**selection.query(), "limit": str(limit), "continue": page.metadata.continue_}

    async def watch(
        self, resource: Resource[Any], resource_version: str, selection: Selection = EVERYTHING, *, seconds: int | None = None
    ) -> AsyncGenerator[WatchEvent]:
        """All that happened after this resourceVersion, with bookmarks. Ends when the server ends it, after `seconds` where given;
        an ERROR event is raised as its error."""
        async with contextlib.aclosing(self.watch_batches(resource, resource_version, selection, seconds=seconds)) as batches:
            async for batch in batches:
                for kind, raw in batch:
                    yield WatchEvent(kind, msgspec.Raw(raw))

    async def watch_batches(
        self,
        resource: Resource[Any],
        resource_version: str,
        selection: Selection = EVERYTHING,
        *,
        seconds: int | None = None,
        initial: bool = False,
    ) -> AsyncGenerator[list[tuple[str, bytes]]]:
        """The same for those in a hurry: as many at once as have come, each a type and the object's bytes. `initial` asks for all
        that is there first, in a state at least as new as the resourceVersion, and then for a bookmark that says so: a list without
        pages, and without a gap before the watch."""
        query = {**selection.query(), "watch": "1", "resourceVersion": resource_version, "allowWatchBookmarks": "true"}
        if seconds is not None:
            query["timeoutSeconds"] = str(seconds)
        if initial:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        call = Call("GET", resource.path(selection.namespace), query, patience=None)
        async with self.transport.stream(call) as pieces:
            async for lines in _lines(pieces):
                batch, error = _read_events(lines)
                if batch:
                    yield batch
                if error is not None:
                    raise error

    # Writes.

    async def create(self, resource: Resource[V], document: Document, namespace: str = "") -> V:
        """The kind and apiVersion are filled in; the namespace is that of the document unless given."""
        namespace = namespace or document.get("metadata", {}).get("namespace", "")
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **document}
        call = Call("POST", resource.path(namespace), self._managed(), msgspec.json.encode(whole))
        return _read(resource, await self._ask(call))

    async def patch(
        self,
        resource: Resource[V],
        key: Key,
        patch: Document | list[Any],
        *,
        subresource: str = "",
        content_type: str = MERGE_PATCH,
    ) -> V:
        """A merge patch, unless said otherwise. Preconditions (uid, resourceVersion) go into the patch's own metadata."""
        return _decode(resource, await self.patch_raw(resource, key, patch, subresource=subresource, content_type=content_type))

    async def patch_raw(
        self,
        resource: Resource[Any],
        key: Key,
        patch: Document | list[Any],
        *,
        subresource: str = "",
        content_type: str = MERGE_PATCH,
        dry_run: bool = False,
    ) -> bytes:
        """The same, answered as the server sent it; a dry run is checked and answered like the real one, and not stored."""
        query = {**self._managed(), **({"dryRun": "All"} if dry_run else {})}
        call = Call("PATCH", _path(resource, key, subresource), query, msgspec.json.encode(patch), content_type)
        return (await self._ask(call)).body

    async def apply(
        self, resource: Resource[V], key: Key, document: Document, *, subresource: str = "", manager: str = "", force: bool = True
    ) -> V:
        """Server-side apply: what the document holds is ours from now on, what we no longer say is taken away."""
        raw = await self.apply_raw(resource, key, document, subresource=subresource, manager=manager, force=force)
        return _decode(resource, raw)

    async def apply_raw(
        self,
        resource: Resource[Any],
        key: Key,
        document: Document,
        *,
        subresource: str = "",
        manager: str = "",
        force: bool = True,
        dry_run: bool = False,
    ) -> bytes:
        """The same, answered as the server sent it; a dry run is checked and answered like the real one, and not stored."""
        metadata = {"name": key.name, **({"namespace": key.namespace} if key.namespace else {}), **document.get("metadata", {})}
        whole = {**document, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        query = {"fieldManager": manager or self.manager, "force": "true" if force else "false"}
        if dry_run:
            query["dryRun"] = "All"
        call = Call("PATCH", _path(resource, key, subresource), query, msgspec.json.encode(whole), APPLY_PATCH)
        return (await self._ask(call)).body

    async def delete(
        self,
        resource: Resource[Any],
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        """With a uid or resourceVersion only that very object, in that very state."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: Document = {"preconditions": {name: value for name, value in preconditions.items() if value}}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        if propagation is not None:
            options["propagationPolicy"] = propagation
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", **options})
        await self._ask(Call("DELETE", _path(resource, key), body=body))

    async def post(self, resource: Resource[Any], key: Key, subresource: str, document: Document) -> None:
        """For subresources that act: binding, eviction."""
        call = Call("POST", _path(resource, key, subresource), self._managed(), msgspec.json.encode(document))
        await self._ask(call)

    def _managed(self) -> Mapping[str, str]:
        return {"fieldManager": self.manager}

    def _warn(self, reply: Reply) -> None:
        """Each warning once: a controller would hear the same one for every object."""
        for warning in reply.warnings:
            if warning not in self._warned and len(self._warned) < MOST_WARNINGS:
                self._warned.add(warning)
                log.warning(_text_of(warning), by="the API server")

    async def _ask(self, call: Call) -> Reply:
        reply = await self.transport.send(call)
        self._warn(reply)
        if reply.status >= 400:
            raise error_from(reply.status, reply.body)
        return reply


def _path(resource: Resource[Any], key: Key, subresource: str = "") -> str:
    """Never that of the whole collection: a delete there would delete everything."""
    if not key.name:
        raise ValueError(f"a key without a name says which of the {resource.qualified} is meant to nobody")
    if key.name in (".", ".."):
        # No object can have such a name, and on the way it would be taken for a step within the path.
        raise NotFound(404, "NotFound", f'{resource.qualified} "{key.name}" not found')
    return resource.path(*key, subresource)


def _read(resource: Resource[V], reply: Reply) -> V:
    return _decode(resource, reply.body)


def _decode(resource: Resource[V], raw: bytes | msgspec.Raw) -> V:
    try:
        return resource.decode(raw)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"an object of {resource.qualified} cannot be read: {error}") from error


def _read_page(reply: Reply) -> Page:
    try:
        return _page.decode(reply.body)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"the answer is not a list: {error}") from error


def _read_events(lines: bytes) -> tuple[list[tuple[str, bytes]], KubeError | None]:
    """Of whole lines. What came before an ERROR event still counts."""
    events: list[tuple[str, bytes]] = []
    start = 0
    while (end := lines.find(b"\n", start)) >= 0:
        if end > start:
            kind, raw = event = _read_event(lines, start, end)
            if kind == "ERROR":
                return events, error_from(500, raw)
            events.append(event)
        start = end + 1
    return events, None


def _read_event(lines: bytes, start: int, end: int) -> tuple[str, bytes]:
    """As all servers write it, the line need not be decoded: whoever reads the object reads every byte of it anyway. Nor is it
    copied: the object is cut out of all that came."""
    if lines.startswith(_TYPE, start) and lines.startswith(b"}", end - 1):
        kind = start + len(_TYPE)
        stop = lines.find(b'"', kind, end)
        if stop >= 0 and lines.startswith(_OBJECT, stop):
            return lines[kind:stop].decode(), lines[stop + len(_OBJECT) : end - 1]
    try:
        event = _event.decode(lines[start:end])
        return event.type, bytes(event.object)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"a line of the watch is not an event: {error}") from error


def _text_of(warning: str) -> str:
    """Of a Warning header (`299 - "text"`), where it came in one."""
    found = re.fullmatch(r'\d{3} \S+ "(.*)"', warning)
    return re.sub(r"\\(.)", r"\1", found.group(1)) if found else warning


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pieces end anywhere, events end with their line; what comes after the last line is the beginning of a lost event."""
    rest = b""
    async for piece in pieces:
        whole = rest + piece if rest else piece
        end = whole.rfind(b"\n") + 1
        rest = whole[end:]
        if end:
            yield whole
    if rest:
        raise Unreachable("the watch ended in the middle of an event")
