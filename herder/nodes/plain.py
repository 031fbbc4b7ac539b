"""Plain pods on simulated nodes: their containers run at once, and end when they are told to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.api.world import World
from herder.nodes.runtimes.base import GuestStatus, Refused, Usage
from herder.nodes.runtimes.simulated.settings import Settings, settings_of

# What of a simulated guest's annotations says something about containers, too.
LOAD = ("cpu", "memory")


class _Running(msgspec.Struct, frozen=True):
    status: GuestStatus
    load: Settings


class PlainPods:
    def __init__(self, world: World) -> None:
        self._world = world
        self._running: dict[str, _Running] = {}
        self._changed: Callable[[str], None] = lambda uid: None

    async def open(self, changed: Callable[[str], None]) -> None:
        self._changed = changed

    async def close(self) -> None:
        pass

    def uids(self) -> list[str]:
        return list(self._running)

    def status(self, uid: str) -> GuestStatus | None:
        found = self._running.get(uid)
        return found.status if found is not None else None

    def usage(self, uid: str) -> Usage | None:
        found = self._running.get(uid)
        if found is None or found.status.started_at is None:
            return None
        ran = max(0.0, self._world.now() - found.status.started_at)
        return Usage(found.load.cpu.until(ran), int(found.load.memory.at(ran)))

    async def start(self, pod: Pod) -> None:
        """Raises `Refused` where its load cannot be read."""
        self._run(pod, self._world.now(), _load_of(pod))

    async def adopt(self, pod: Pod, *, taken_over: bool = False) -> None:
        began = pod.status.start_time
        load = Settings()
        # Annotations may have been changed since: it runs all the same.
        with contextlib.suppress(Refused):
            load = _load_of(pod)
        self._run(pod, began.timestamp() if began else self._world.now(), load)

    def _run(self, pod: Pod, since: float, load: Settings) -> None:
        self._running[pod.uid] = _Running(GuestStatus("Running", started_at=since), load)

    async def shut_down(self, uid: str) -> None:
        self._running[uid] = _Running(GuestStatus("ShutDown"), Settings())
        self._changed(uid)

    async def remove(self, uid: str) -> None:
        self._running.pop(uid, None)

    async def pause(self, uid: str) -> None:
        pass

    async def resume(self, uid: str) -> None:
        pass


def _load_of(pod: Pod) -> Settings:
    return settings_of(
        {name: pod.annotations[labels.SIMULATED + name] for name in LOAD if labels.SIMULATED + name in pod.annotations}
    )
