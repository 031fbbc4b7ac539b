"""One watch: the events as they come, and the way to go on after the last one seen."""

import asyncio
from typing import Any, NamedTuple

import aiohttp
import msgspec

_OPEN_ENDED = aiohttp.ClientTimeout(total=None, sock_connect=10)


class WatchEvent(NamedTuple):
    type: str
    object: dict[str, Any]

    @property
    def name(self) -> str:
        return self.object["metadata"].get("name", "")

    @property
    def version(self) -> str:
        return self.object["metadata"]["resourceVersion"]

    @property
    def brief(self) -> tuple[str, str]:
        return self.type, self.name


class Watch:
    def __init__(self, session: aiohttp.ClientSession, url: str, accept: str, query: dict[str, str]) -> None:
        self._session = session
        self._url = url
        self._headers = {"Accept": accept}
        self._query = query
        self._answer: aiohttp.ClientResponse | None = None
        self._rest = b""
        self.last_version = query.get("resourceVersion", "")

    async def open(self) -> None:
        self._answer = await self._session.get(self._url, params=self._query, headers=self._headers, timeout=_OPEN_ENDED)

    @property
    def answer(self) -> aiohttp.ClientResponse:
        assert self._answer is not None, "the watch is not open"
        return self._answer

    @property
    def code(self) -> int:
        return self.answer.status

    async def body(self) -> dict[str, Any]:
        """Of an answer that is a refusal and not a stream."""
        return msgspec.json.decode(await self.answer.read())

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    async def resume(self) -> None:
        """The connection is gone; a new one goes on after the last event that was seen."""
        self.close()
        self._rest = b""
        for once in ("sendInitialEvents", "resourceVersionMatch"):
            self._query.pop(once, None)
        self._query["resourceVersion"] = self.last_version
        await self.open()

    async def next(self, patience: float = 10) -> WatchEvent:
        """The next event; it is an error when none comes or the stream ends."""
        # Not wait_for: where an event comes at that very moment, it swallows that its task was cancelled.
        async with asyncio.timeout(patience):
            event = await self._read()
        assert event is not None, "the watch ended"
        return event

    async def take(self, count: int, patience: float = 10) -> list[WatchEvent]:
        return [await self.next(patience) for _ in range(count)]

    async def until(self, kind: str, name: str = "", patience: float = 10) -> list[WatchEvent]:
        """All events up to the first of that kind (and name), which is the last of them."""
        events = [await self.next(patience)]
        while events[-1].type != kind or (name and events[-1].name != name):
            events.append(await self.next(patience))
        return events

    async def rest(self, patience: float = 10) -> list[WatchEvent]:
        """What still comes until the server ends the stream."""
        events: list[WatchEvent] = []
        while (event := await asyncio.wait_for(self._read(), patience)) is not None:
            events.append(event)
        return events

    async def _read(self) -> WatchEvent | None:
        while b"\n" not in self._rest:
            chunk = await self.answer.content.readany()
            if not chunk:
                return None
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        document = msgspec.json.decode(line)
        event = WatchEvent(document["type"], document["object"])
        if event.type != "ERROR":
            self.last_version = event.version
        return event
