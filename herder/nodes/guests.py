"""Guests as the work of launcher pods: what a pod says and mounts becomes an order to the runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

import msgspec

from herder.api import reasons
from herder.api.core import Pod
from herder.api.guest import GuestDefinition, definition_of, report_of
from herder.api.kinds.probes import Probe
from herder.nodes.runtimes.base import Console, GuestStatus, Order, Refused, Runtime, Volume
from herder.nodes.runtimes.simulated import SimulatedRuntime


class Volumes(Protocol):
    async def resolve(self, pod: Pod, definition: GuestDefinition) -> dict[str, Volume]:
        """What the guest mounts, by the names of its volumes. Raises `NotYet` while something is missing."""
        ...


class NoVolumes:
    """For guests that only look as if they had disks."""

    async def resolve(self, pod: Pod, definition: GuestDefinition) -> dict[str, Volume]:
        return {}


class Guests:
    def __init__(self, runtime: Runtime, volumes: Volumes) -> None:
        self._runtime = runtime
        self._volumes = volumes

    async def open(self, changed: Callable[[str], None]) -> None:
        await self._runtime.open(changed)

    async def close(self) -> None:
        await self._runtime.close()

    def uids(self) -> list[str]:
        return self._runtime.guests()

    def status(self, uid: str) -> GuestStatus | None:
        return self._runtime.status(uid)

    async def start(self, pod: Pod) -> None:
        definition = _definition(pod)
        volumes = await self._volumes.resolve(pod, definition)
        await self._runtime.start(Order(pod.uid, definition, volumes))

    async def adopt(self, pod: Pod) -> None:
        """The API says that it runs. Real guests were found when the runtime was opened; simulated ones are made up again."""
        report = report_of(pod)
        if isinstance(self._runtime, SimulatedRuntime) and report is not None and report.state in ("Running", "Paused"):
            started = report.started_at.timestamp() if report.started_at else None
            order = Order(pod.uid, _definition(pod), {})
            self._runtime.adopt(order, paused=report.state == "Paused", started_at=started)

    async def shut_down(self, uid: str) -> None:
        await self._runtime.shut_down(uid)

    async def remove(self, uid: str) -> None:
        await self._runtime.remove(uid)

    async def pause(self, uid: str) -> None:
        await self._runtime.pause(uid)

    async def resume(self, uid: str) -> None:
        await self._runtime.resume(uid)

    async def log(self, uid: str, *, follow: bool = False) -> AsyncIterator[bytes]:
        return await self._runtime.log(uid, follow=follow)

    async def console(self, uid: str) -> Console:
        return await self._runtime.console(uid)

    async def probe(self, uid: str, probe: Probe) -> bool:
        return await self._runtime.probe(uid, probe)


def _definition(pod: Pod) -> GuestDefinition:
    try:
        found = definition_of(pod)
    except msgspec.MsgspecError as error:
        raise Refused(reasons.UNSUPPORTED, f"what the pod says of its guest cannot be read: {error}") from error
    assert found is not None, "asked only for pods that have one"
    return found
