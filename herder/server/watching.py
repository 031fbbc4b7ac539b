"""Who watches what: each committed change is offered to those it may concern, and to nobody else."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from herder.server.pacing import Pace
from herder.server.selection import Selection
from herder.server.store import ADDED, DELETED, MODIFIED, Change, Store

# A client that is further behind than this is let go: it comes back with the last resourceVersion that it saw.
QUEUE_LIMIT = 10_000
QUEUE_BYTES = 32 * 1024 * 1024

Event = tuple[str, Change]


class Watcher:
    """A queue between the store and one client. Offering never waits: a slow client only ever slows down itself."""

    __slots__ = ("_alarm", "_bytes", "_closed", "_pace", "_queue", "_waiting", "_woken", "floor", "selection")

    def __init__(self, selection: Selection, floor: int, pace: Pace) -> None:
        self.selection = selection
        # Changes up to here are not for this watcher: it has them from elsewhere.
        self.floor = floor
        self._queue: deque[Event] = deque()
        self._bytes = 0
        self._waiting: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._woken = False
        self._closed = False
        self._pace = pace

    def offer(self, change: Change) -> None:
        if change.revision <= self.floor or self._closed:
            return
        kind = event_kind(self.selection, change)
        if kind is None:
            return
        if len(self._queue) >= QUEUE_LIMIT or self._bytes >= QUEUE_BYTES:
            self.close()
            return
        self._queue.append((kind, change))
        self._bytes += len(change.record.raw)
        if len(self._queue) == 1:
            self._pace.add(self)

    def wake(self) -> None:
        if self._queue:
            self._woken = True
            self._go_on()

    def close(self) -> None:
        self._closed = self._woken = True
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    @property
    def closed(self) -> bool:
        return self._closed

    async def take(self, until: float) -> list[Event]:
        """What has come, all at once; nothing when the time is up."""
        if not self._woken:
            self._waiting = asyncio.get_running_loop().create_future()
            self._set_alarm(until)
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self.drain() if self._woken else []

    def _set_alarm(self, until: float) -> None:
        """Kept from one time to the next: it seldom changes, and most often something comes before it goes off."""
        if self._alarm is None or self._alarm.when() != until:
            self.silence()
            self._alarm = asyncio.get_running_loop().call_at(until, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._go_on()

    def silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def drain(self) -> list[Event]:
        """What has come, without waiting."""
        events = list(self._queue)
        self._queue.clear()
        self._bytes = 0
        self._woken = self._closed
        return events


def event_kind(selection: Selection, change: Change) -> str | None:
    """What a change is to someone who sees only a selection: an object may come into it, change in it, or leave it."""
    if not selection.covers(change.record):
        return None
    if not selection.selective:
        return change.kind
    now = change.kind != DELETED and selection.matches(change.record)
    before = change.previous is not None and selection.matches(change.previous)
    if now:
        return MODIFIED if before else ADDED
    return DELETED if before else None


# In the order in which they came: a set would have them in another order in each run, and no run could be repeated.
_Bucket = dict[Watcher, None]


class _Pins:
    """The watchers that want one value of one field, by that value."""

    def __init__(self) -> None:
        self.values: dict[str, _Bucket] = {}

    def offer(self, change: Change, field: str) -> None:
        any_watcher = next((watcher for bucket in self.values.values() for watcher in bucket), None)
        if any_watcher is None:
            return
        read = any_watcher.selection.value
        wanted = {read(change.record, field): None}
        if change.previous is not None:
            wanted[read(change.previous, field)] = None
        for value in wanted:
            for watcher in self.values.get(value, ()):
                watcher.offer(change)


class Hub:
    """Watchers by kind; those that ask for one value of a field (one node's pods) are found by that value."""

    def __init__(self, store: Store) -> None:
        self.pace = Pace()
        self._all: dict[str, _Bucket] = {}
        self._pinned: dict[str, dict[str, _Pins]] = {}
        store.listen("", self._offer)

    def add(self, table: str, watcher: Watcher) -> Callable[[], None]:
        """Returns how to leave again."""
        pin = watcher.selection.pin
        if pin is None:
            everyone = self._all.setdefault(table, {})
            everyone[watcher] = None
            return lambda: _discard(everyone, watcher)
        field, value = pin
        values = self._pinned.setdefault(table, {}).setdefault(field, _Pins()).values
        values.setdefault(value, {})[watcher] = None
        return lambda: _leave(values, value, watcher)

    def _offer(self, change: Change) -> None:
        for watcher in self._all.get(change.table, ()):
            watcher.offer(change)
        for field, pins in self._pinned.get(change.table, {}).items():
            pins.offer(change, field)

    def close(self, table: str | None = None) -> None:
        """End all watches (of one kind): the server stops, or the kind goes away."""
        for watcher in self.watchers(table):
            watcher.close()

    def watchers(self, table: str | None = None) -> list[Watcher]:
        found = [one for name, bucket in self._all.items() if table in (None, name) for one in bucket]
        for name, fields in self._pinned.items():
            if table in (None, name):
                found += [one for pins in fields.values() for bucket in pins.values.values() for one in bucket]
        return found


def _discard(bucket: _Bucket, watcher: Watcher) -> None:
    bucket.pop(watcher, None)


def _leave(values: dict[str, _Bucket], value: str, watcher: Watcher) -> None:
    bucket = values.get(value, {})
    _discard(bucket, watcher)
    if not bucket:
        values.pop(value, None)
