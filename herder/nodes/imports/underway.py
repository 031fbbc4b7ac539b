"""What all imports have in common: one task for each pod, what is known of it, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from herder.api import reasons
from herder.api.core import Pod
from herder.api.guest import SavedGuest
from herder.api.imports import ImportDefinition, ImportReport, import_of
from herder.nodes.runtimes.base import GuestStatus, Refused


class UnderWay:
    def __init__(self) -> None:
        self._status: dict[str, GuestStatus] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed: Callable[[str], None] = lambda uid: None

    async def open(self, changed: Callable[[str], None]) -> None:
        self._changed = changed

    async def close(self) -> None:
        for uid in tuple(self._tasks):
            await self._stop(uid)

    def uids(self) -> list[str]:
        return list(self._status)

    def status(self, uid: str) -> GuestStatus | None:
        return self._status.get(uid)

    async def shut_down(self, uid: str) -> None:
        await self._stop(uid)
        if uid in self._status:
            self._end(uid, reasons.CANCELLED, "it was ended before it was done")

    async def remove(self, uid: str) -> None:
        await self._stop(uid)
        self._status.pop(uid, None)

    async def pause(self, uid: str) -> None:
        pass

    async def resume(self, uid: str) -> None:
        pass

    async def _stop(self, uid: str) -> None:
        task = self._tasks.pop(uid, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _end(self, uid: str, reason: str = "", message: str = "", saved: SavedGuest | None = None) -> None:
        """Without a reason: it is done."""
        before = self._status[uid]
        report = msgspec.structs.replace(before.imported or ImportReport(), reason=reason, message=message, saved=saved)
        if not reason:
            report = msgspec.structs.replace(report, done=max(report.total, 1), total=max(report.total, 1))
        state = "Failed" if reason else "ShutDown"
        self._status[uid] = GuestStatus(state, reason, message, started_at=before.started_at, imported=report)
        self._changed(uid)


def definition_of(pod: Pod) -> ImportDefinition:
    try:
        found = import_of(pod)
    except msgspec.MsgspecError as error:
        raise Refused(reasons.UNSUPPORTED, f"what the pod says of its import cannot be read: {error}") from error
    assert found is not None, "asked only for pods that have one"
    return found


def saves(pod: Pod, guest: str) -> bool:
    """Whether the pod saves the memory of this guest."""
    try:
        found = import_of(pod)
    except msgspec.MsgspecError:
        return False
    return found is not None and (found.action, found.guest) == ("save", guest)
