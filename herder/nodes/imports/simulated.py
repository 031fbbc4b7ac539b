"""Imports of simulated nodes: nothing is fetched, but it takes its time, and fails where it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.duration import parse_seconds
from herder.api.imports import ImportDefinition, ImportReport
from herder.api.quantity import parse_quantity
from herder.api.world import World
from herder.kit.tasks import watched
from herder.nodes.imports.failure import ImportFailed
from herder.nodes.imports.saving import SavesMemory, saved
from herder.nodes.imports.underway import UnderWay, definition_of
from herder.nodes.runtimes.base import GuestStatus, Refused

MOST, BANDWIDTH = 256 * 1024 * 1024, 512 * 1024 * 1024
STEP = 1.0


class Simulation(msgspec.Struct, frozen=True):
    seconds: float
    size: int
    fails: str = ""  # a reason
    fails_times: int = 1_000_000  # the first so many attempts


class SimulatedImports(UnderWay):
    def __init__(self, world: World, guests: SavesMemory | None = None) -> None:
        super().__init__()
        self._world = world
        self._guests = guests

    async def start(self, pod: Pod) -> None:
        if pod.uid in self._status:
            return
        definition = definition_of(pod)
        if definition.action == "save":
            self._say(pod.uid, 0, 0, self._world.now())
            self._tasks[pod.uid] = watched(self._save(pod, definition), "saving memory", pod=pod.name)
            return
        simulation = simulation_of(definition)
        attempt = int(pod.labels.get(labels.IMPORT_ATTEMPT, "0") or 0)
        fails = simulation.fails if attempt < simulation.fails_times else ""
        self._say(pod.uid, 0, simulation.size, self._world.now())
        self._tasks[pod.uid] = watched(self._run(pod.uid, simulation, fails), "an import", pod=pod.name)

    async def adopt(self, pod: Pod, *, taken_over: bool = False) -> None:
        await self.start(pod)

    async def _save(self, pod: Pod, definition: ImportDefinition) -> None:
        uid = pod.uid

        def told(done: int, total: int) -> None:
            self._say(uid, done, total, self._status[uid].started_at)

        def waits(why: str) -> None:
            known = self._status[uid]
            if known.imported != (report := ImportReport(message=why)):
                self._status[uid] = msgspec.structs.replace(known, imported=report)
                self._changed(uid)

        try:
            assert self._guests is not None, "simulated nodes have guests"
            done = await saved(self._guests, definition, pod.controller_uid, None, told, waits)
        except ImportFailed as failure:
            self._end(uid, failure.reason, str(failure))
        else:
            self._end(uid, saved=done)

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
        self._end(uid, fails, f"failed as told by {labels.SIMULATED}import-fails" if fails else "")


def simulation_of(definition: ImportDefinition) -> Simulation:
    """Raises `Refused` with the annotation at fault."""
    written = definition.simulated
    try:
        if definition.action in ("delete", "grow"):
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
