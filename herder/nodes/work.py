"""What a node does for a pod: run a guest, fill a claim, or (simulated) run containers. A pod's work is known by the pod's uid."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol, runtime_checkable

from herder.api.core import Pod
from herder.api.kinds.probes import Probe
from herder.nodes.moving.moving import Moving
from herder.nodes.runtimes.base import Console, GuestStatus, Usage


class NotYet(Exception):
    """It cannot be started now, and may be later: a Secret or a volume is missing. `reason` is one word of `herder.api.reasons`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Work(Protocol):
    """Every order is safe to repeat."""

    async def open(self, changed: Callable[[str], None]) -> None:
        """Finds again what is under way. `changed(uid)` is called whenever a status may be another."""
        ...

    async def close(self) -> None: ...

    def uids(self) -> list[str]:
        """All that there is, ended work too, until it is removed."""
        ...

    def status(self, uid: str) -> GuestStatus | None: ...

    async def start(self, pod: Pod) -> None:
        """Raises `Refused` for ever, `NotYet` for now."""
        ...

    async def adopt(self, pod: Pod, *, taken_over: bool = False) -> None:
        """The API says that it runs, and we do not know it. Where that cannot be made true, nothing happens. `taken_over`: another
        pod says that it is there by now."""
        ...

    async def shut_down(self, uid: str) -> None:
        """Asks it to end, and does not wait."""
        ...

    async def remove(self, uid: str) -> None:
        """Ends it at once; nothing of it is left."""
        ...

    async def pause(self, uid: str) -> None: ...

    async def resume(self, uid: str) -> None: ...


@runtime_checkable
class HasLog(Protocol):
    """Work that writes something which people can read."""

    async def log(self, uid: str, *, follow: bool = False) -> AsyncIterator[bytes]:
        """From the beginning; where it is followed, until the work has ended."""
        ...


@runtime_checkable
class HasConsole(Protocol):
    """Work that people can talk to."""

    async def console(self, uid: str) -> Console: ...


@runtime_checkable
class HasUsage(Protocol):
    """Work whose share of the node can be told."""

    def usage(self, uid: str) -> Usage | None:
        """None where nothing runs."""
        ...


@runtime_checkable
class HasMoves(Protocol):
    """Work that can be moved to other nodes."""

    def moving(self, uid: str) -> Moving: ...


class GuestWork(Work, Protocol):
    """Guests can be asked how they are, too, and moved."""

    async def probe(self, uid: str, probe: Probe) -> bool: ...

    async def look(self, pod: Pod) -> None:
        """What the pod says of a move, which may be another at any time."""
        ...

    def moving(self, uid: str) -> Moving: ...

    async def go_on(self, uid: str) -> None:
        """Nobody saves its memory any more."""
        ...

    def begins_to_resume(self, uid: str) -> None:
        """Its pod is about to be told that it goes on from saved memory."""
        ...
