"""Imports of simulated nodes: nothing is fetched, but it takes its time, and fails where it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.duration import parse_seconds
from herder.api.imports import ImportDefinition, ImportReport
from herder.api.quantity import parse_quantity
from herder.api.world import World
from herder.nodes.imports.work import definition_of
from herder.nodes.runtimes.base import GuestStatus, Refused

MOST, BANDWIDTH = 256 * 1024 * 1024, 512 * 1024 * 1024
STEP = 1.0


class Simulation(msgspec.Struct, frozen=True):
    seconds: float
    size: int
    fails: str = ""  # a reason
    fails_times: int = 1_000_000  # the first so many attempts


class SimulatedImports:
    def __init__(self, world: World) -> None:
        self._world = world
        self._status: dict[str, GuestStatus] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed: Callable[[str], None] = lambda uid: None

    async def open(self, changed: Callable[[str], None]) -> None:
        self._changed = changed

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def uids(self) -> list[str]:
        return list(self._status)

    def status(self, uid: str) -> GuestStatus | None:
        return self._status.get(uid)

    async def start(self, pod: Pod) -> None:
        if pod.uid in self._status:
            return
        simulation = simulation_of(definition_of(pod))
        attempt = int(pod.labels.get(labels.IMPORT_ATTEMPT, "0") or 0)
        fails = simulation.fails if attempt < simulation.fails_times else ""
        self._say(pod.uid, 0, simulation.size, self._world.now())
        self._tasks[pod.uid] = asyncio.create_task(self._run(pod.uid, simulation, fails))

    async def adopt(self, pod: Pod, *, taken_over: bool = False) -> None:
        await self.start(pod)

    async def shut_down(self, uid: str) -> None:
        await self.remove(uid)
        self._status[uid] = GuestStatus("Failed", reasons.CANCELLED, "it was ended before it was done")
        self._changed(uid)

    async def remove(self, uid: str) -> None:
        if task := self._tasks.pop(uid, None):
            task.cancel()
        self._status.pop(uid, None)

    async def pause(self, uid: str) -> None:
        pass

    async def resume(self, uid: str) -> None:
        pass

    def _say(self, uid: str, done: int, total: int, since: float | None) -> None:
        self._status[uid] = GuestStatus("Running", started_at=since, imported=ImportReport(done=done, total=total))
        self._changed(uid)

    async def _run(self, uid: str, simulation: Simulation, fails: str) -> None:
        since = self._status[uid].started_at
        end = simulation.seconds / 2 if fails else simulation.seconds
        passed = 0.0
        while passed < end:
            step = min(STEP, end - passed)
            await asyncio.sleep(step)
            passed += step
            self._say(uid, int(simulation.size * passed / simulation.seconds), simulation.size, since)
        message = f"failed as told by {labels.SIMULATED}import-fails" if fails else ""
        report = ImportReport(done=simulation.size, total=simulation.size, reason=fails, message=message)
        self._status[uid] = GuestStatus("Failed" if fails else "ShutDown", fails, message, started_at=since, imported=report)
        self._tasks.pop(uid, None)
        self._changed(uid)


def simulation_of(definition: ImportDefinition) -> Simulation:
    """Raises `Refused` with the annotation at fault."""
    written = definition.simulated
    try:
        if definition.action == "delete":
            return Simulation(0.0, 1)
        size = _bytes(written, "import-size", min(definition.capacity, MOST))
        bandwidth = _bytes(written, "import-bandwidth", BANDWIDTH)
        seconds = size / max(bandwidth, 1) if definition.action != "blank" else 0.0
        if "import-duration" in written:
            seconds = parse_seconds(written["import-duration"])
        return Simulation(seconds, max(size, 1), written.get("import-fails", ""), int(written.get("import-fails-times", 1_000_000)))
    except (ValueError, TypeError) as error:
        raise Refused(reasons.UNSUPPORTED, f"an annotation {labels.SIMULATED}import-… cannot be read: {error}") from None


def _bytes(written: Mapping[str, str], name: str, default: int) -> int:
    return parse_quantity(written[name]).value() if name in written else default
