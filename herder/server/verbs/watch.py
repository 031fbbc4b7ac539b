"""Watches: everything that happens behind a resourceVersion, once, in order, until one side has enough."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

import msgspec

from herder.api.problems import Problem, forbidden, not_supported
from herder.server import status
from herder.server.engine import Engine
from herder.server.presenting import Gathering, event_shaper, in_chunks, in_turns, shown
from herder.server.request import Answer, Request, Stream, Target
from herder.server.revisions import parse_revision
from herder.server.selection import Selection, selection_of
from herder.server.served import Served
from herder.server.store import ADDED, Change, CompactedError, Record
from herder.server.store.records import watch_frame
from herder.server.watching import Event, Watcher, event_kind

BOOKMARK = "BOOKMARK"
BOOKMARK_EVERY = 60.0
# Shortly before a watch ends by its own timeout, so that the client can go on from where it was.
BOOKMARK_BEFORE_END = 2.0
INITIAL_END = "k8s.io/initial-events-end"
SHORTEST = 1800.0


class Session:
    """One watch: where it starts, what it shows, and when it ends."""

    def __init__(self, engine: Engine, served: Served, selection: Selection, request: Request) -> None:
        self.engine = engine
        self.served = served
        self.selection = selection
        self.bookmarks = request.flag("allowWatchBookmarks")
        initial = request.choice("sendInitialEvents")
        self.initial, self.initial_end = initial is not False, initial is True
        self.revision = parse_revision(request.query.get("resourceVersion"))
        self.shape = event_shaper(request, served, engine.world.now)
        # Herds of clients that started together should not all come back together.
        seconds = request.number("timeoutSeconds") or SHORTEST * (1 + engine.world.random())
        self.ends = loop_time() + seconds
        check_options(request)

    async def chunks(self) -> AsyncIterator[bytes]:
        store = self.engine.store
        from_now = not self.revision or self.initial_end
        hub = self.engine.hub
        watcher = Watcher(self.selection, store.revision if from_now else max(store.revision, self.revision or 0), hub.pace)
        leave = hub.add(self.served.table, watcher)
        try:
            if from_now:
                async for chunk in self._initial():
                    yield chunk
            else:
                try:
                    async for chunk in self._replay(self.revision or 0, watcher.floor):
                        yield chunk
                except CompactedError as error:
                    yield _error_frame(status.expired(str(error)))
                    return
            async for chunk in self._live(watcher):
                yield chunk
        finally:
            leave()
            watcher.silence()

    async def _initial(self) -> AsyncIterator[bytes]:
        """Everything that is there now, as if it had just been added; in pieces, since it may be much."""
        store = self.engine.store
        revision = store.revision
        records: list[Record] = []
        if self.initial:
            records = list(store.scan(self.served.table, self.selection.prefix))
        matching = self.selection.matches if self.selection.selective else None
        gathering = Gathering()
        async for record in in_turns(records):
            if matching is not None and not matching(record):
                continue
            frame = self._frame(ADDED, shown(self.served, record))
            if chunk := gathering.add(frame, len(frame)):
                yield chunk
        if rest := gathering.rest():
            yield rest
        if self.initial_end and self.bookmarks:
            yield self._bookmark(revision, {INITIAL_END: "true"})

    async def _replay(self, after: int, upto: int) -> AsyncIterator[bytes]:
        """A page at a time: as much as the client takes before the next one is read."""
        selection = self.selection
        while after < upto:
            page = await self.engine.store.changes_after(
                self.served.table, after, upto, selection.prefix.rstrip("/"), with_previous=selection.selective
            )
            async for chunk in self._shown(self._seen(page.changes)):
                yield chunk
            after = page.end

    def _seen(self, changes: Iterable[Change]) -> Iterable[Event]:
        for change in changes:
            kind = event_kind(self.selection, change)
            if kind is not None:
                yield kind, change

    async def _live(self, watcher: Watcher) -> AsyncIterator[bytes]:
        bookmark_at = self._next_bookmark(loop_time())
        while not watcher.closed and (now := loop_time()) < self.ends:
            if now >= bookmark_at:
                # What still waits comes before the bookmark, which says that everything up to it has been seen.
                last = self.engine.store.revision
                async for chunk in self._shown(watcher.drain()):
                    yield chunk
                yield self._bookmark(last)
                bookmark_at = self._next_bookmark(now)
            events = await watcher.take(min(bookmark_at, self.ends))
            if self.shape is None:
                for chunk in in_chunks(change.frame(kind) for kind, change in events):
                    yield chunk
            else:
                async for chunk in self._shown(events):
                    yield chunk

    def _next_bookmark(self, now: float) -> float:
        last = self.ends - BOOKMARK_BEFORE_END
        if not self.bookmarks:
            return self.ends  # or it would be woken again and again for one that never comes
        return min(now + BOOKMARK_EVERY, last) if now < last else self.ends

    async def _shown(self, events: Iterable[Event]) -> AsyncIterator[bytes]:
        """Events as this client sees them. Where each has to be made for it, the others get their turn now and then."""
        gathering = Gathering()
        for kind, change in events:
            # Not the shared frame, which would be kept with the change for as long as that is history.
            if chunk := gathering.add(self._frame(kind, change.raw(kind)), len(change.record.raw)):
                yield chunk
                await asyncio.sleep(0)
        if rest := gathering.rest():
            yield rest

    def _frame(self, kind: str, raw: bytes) -> bytes:
        return watch_frame(kind, raw if self.shape is None else self.shape(raw))

    def _bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        """Nothing happened, but you have seen everything up to here."""
        resource = self.served.resource
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        document = {"kind": resource.kind, "apiVersion": resource.group_version, "metadata": metadata}
        return self._frame(BOOKMARK, msgspec.json.encode(document))


def loop_time() -> float:
    return asyncio.get_running_loop().time()


def check_options(request: Request) -> None:
    asked = request.query.get("sendInitialEvents")
    match = request.query.get("resourceVersionMatch", "")
    problems: list[Problem] = []
    if match and asked is None:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        problems.append(forbidden("resourceVersionMatch", why))
    if asked is not None and not match:
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        problems.append(forbidden("resourceVersionMatch", why))
    if match not in ("", "NotOlderThan"):
        problems.append(not_supported("resourceVersionMatch", match, ("NotOlderThan",)))
    if problems:
        raise status.invalid_options("ListOptions", problems)


def _error_frame(error: status.ApiError) -> bytes:
    return b'{"type":"ERROR","object":' + error.body().strip() + b"}\n"


async def watch(engine: Engine, served: Served, target: Target, request: Request) -> Answer:
    selection = selection_of(request, target, served)
    request.number("limit")  # of no use here, and yet it has to be one
    session = Session(engine, served, selection, request)
    chunks: Callable[[], AsyncIterator[bytes]] = session.chunks
    return Stream(chunks, "application/json")
