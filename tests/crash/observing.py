"""Clients that only look: watchers that go on after what they saw last, and readers of lists in pages."""

import asyncio
from typing import Any, NamedTuple

from tests.crash.writing import LOST, NAMESPACE, Book, value_of
from tests.engines.api import Api
from tests.engines.resources import CONFIG_MAPS
from tests.engines.watching import WatchEvent


class Saw(NamedTuple):
    revision: int
    kind: str
    name: str
    value: str


class Watching:
    """From one resourceVersion to the end, over however many connections that takes."""

    def __init__(self, api: Api, start: str, *, bookmarks: bool) -> None:
        self._api = api
        self._start = start
        self._bookmarks = bookmarks
        self.saw: list[Saw] = []
        self.connections = 0

    async def run(self, upto: "asyncio.Future[int]") -> None:
        """Until it has seen the revision that `upto` will say."""
        last = self._start
        while not self._done(upto):
            query: dict[str, Any] = {"resourceVersion": last, "allowWatchBookmarks": self._bookmarks, "timeoutSeconds": 600}
            try:
                async with self._api.watch(CONFIG_MAPS, NAMESPACE, **query) as watch:
                    self.connections += 1
                    assert watch.code == 200
                    while not self._done(upto):
                        self._note(await watch.next(patience=30))
                        last = watch.last_version
            except (*LOST, AssertionError) as problem:
                if isinstance(problem, AssertionError) and str(problem) != "the watch ended":
                    raise
                await asyncio.sleep(0.01)

    def _done(self, upto: "asyncio.Future[int]") -> bool:
        return upto.done() and bool(self.saw) and self.saw[-1].revision >= upto.result()

    def _note(self, event: WatchEvent) -> None:
        assert event.type != "ERROR", event.object
        revision = int(event.version)
        last = self.saw[-1].revision if self.saw else int(self._start)
        if event.type == "BOOKMARK":
            assert revision >= last
            return
        assert revision > last, f"{event.type} {event.name} at {revision} came after {last}"
        self.saw.append(Saw(revision, event.type, event.name, value_of(event.object) if event.type != "DELETED" else ""))


class Snapshot(NamedTuple):
    revision: int
    objects: dict[str, str]


class Paging:
    """Lists in small pages, which may come from several lives of the engine, but show one moment."""

    def __init__(self, api: Api, book: Book) -> None:
        self._api = api
        self._book = book
        self.snapshots: list[Snapshot] = []

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            newest = self._book.newest
            snapshot = await self._list()
            assert snapshot.revision >= newest, f"a list showed {snapshot.revision} after {newest} was acknowledged"
            self.snapshots.append(snapshot)
            await asyncio.sleep(0.05)

    async def _list(self) -> Snapshot:
        page = await self._page({"limit": 3})
        revision, objects = page["metadata"]["resourceVersion"], _objects(page)
        while token := page["metadata"].get("continue"):
            await asyncio.sleep(0.02)
            page = await self._page({"limit": 3, "continue": token})
            assert page["metadata"]["resourceVersion"] == revision
            objects |= _objects(page)
        return Snapshot(int(revision), objects)

    async def _page(self, query: dict[str, Any]) -> dict[str, Any]:
        while True:
            try:
                reply = await self._api.list(CONFIG_MAPS, NAMESPACE, **query)
            except LOST:
                await asyncio.sleep(0.01)
                continue
            return reply.ok


def _objects(page: dict[str, Any]) -> dict[str, str]:
    return {item["metadata"]["name"]: value_of(item) for item in page["items"]}


def replayed(events: list[Saw], upto: int | None = None) -> dict[str, str]:
    """The objects after these events; each event must fit to what was there before it."""
    objects: dict[str, str] = {}
    for event in events:
        if upto is not None and event.revision > upto:
            break
        assert (event.kind == "ADDED") == (event.name not in objects), event
        if event.kind == "DELETED":
            del objects[event.name]
        else:
            objects[event.name] = event.value
    return objects
