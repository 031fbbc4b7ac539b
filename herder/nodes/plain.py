"""Plain pods on simulated nodes: their containers run at once, and end when they are told to."""

from __future__ import annotations

from collections.abc import Callable

from herder.api.core import Pod
from herder.api.world import World
from herder.nodes.runtimes.base import GuestStatus


class PlainPods:
    def __init__(self, world: World) -> None:
        self._world = world
        self._running: dict[str, GuestStatus] = {}
        self._changed: Callable[[str], None] = lambda uid: None

    async def open(self, changed: Callable[[str], None]) -> None:
        self._changed = changed

    async def close(self) -> None:
        pass

    def uids(self) -> list[str]:
        return list(self._running)

    def status(self, uid: str) -> GuestStatus | None:
        return self._running.get(uid)

    async def start(self, pod: Pod) -> None:
        self._running[pod.uid] = GuestStatus("Running", started_at=self._world.now())

    async def adopt(self, pod: Pod, *, taken_over: bool = False) -> None:
        began = pod.status.start_time
        self._running[pod.uid] = GuestStatus("Running", started_at=began.timestamp() if began else self._world.now())

    async def shut_down(self, uid: str) -> None:
        self._running[uid] = GuestStatus("ShutDown")
        self._changed(uid)

    async def remove(self, uid: str) -> None:
        self._running.pop(uid, None)

    async def pause(self, uid: str) -> None:
        pass

    async def resume(self, uid: str) -> None:
        pass
