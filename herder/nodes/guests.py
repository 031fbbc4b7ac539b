"""Guests as the work of launcher pods: what a pod says and mounts becomes an order to the runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

import msgspec

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.guest import GuestDefinition, definition_of, report_of
from herder.api.kinds.probes import Probe
from herder.kube.cache import Cache
from herder.nodes.moving import Mover
from herder.nodes.moving.moving import Moving
from herder.nodes.runtimes.base import Console, GuestStatus, Order, Refused, Runtime, Unfit, Usage, Volume
from herder.nodes.runtimes.simulated import SimulatedRuntime


class Volumes(Protocol):
    def follow(self, pods: Cache[Pod]) -> None:
        """Where the pods are known from for which it is asked."""
        ...

    async def resolve(self, pod: Pod, definition: GuestDefinition) -> dict[str, Volume]:
        """What the guest mounts, by the names of its volumes. Raises `NotYet` while something is missing."""
        ...

    async def memory(self, pod: Pod, claim: str) -> Path | None:
        """Where the memory is that was saved into this claim; None where it has no place. Raises `NotYet`, and `Unfit` where the
        claim is gone."""
        ...


class NoVolumes:
    """For guests that only look as if they had disks."""

    def follow(self, pods: Cache[Pod]) -> None:
        pass

    async def resolve(self, pod: Pod, definition: GuestDefinition) -> dict[str, Volume]:
        return {}

    async def memory(self, pod: Pod, claim: str) -> Path | None:
        return None


class Guests:
    def __init__(self, runtime: Runtime, volumes: Volumes, mover: Mover) -> None:
        self._runtime = runtime
        self._volumes = volumes
        self._mover = mover
        # Pods whose guests go on from saved memory since this process runs.
        self._resuming: set[str] = set()

    async def open(self, changed: Callable[[str], None]) -> None:
        def told(uid: str) -> None:
            self._mover.told(uid)
            changed(uid)

        await self._runtime.open(told)
        await self._mover.open(changed)

    async def close(self) -> None:
        await self._mover.close()
        await self._runtime.close()

    def uids(self) -> list[str]:
        return list(dict.fromkeys((*self._runtime.guests(), *self._mover.guests())))

    def status(self, uid: str) -> GuestStatus | None:
        return self._mover.shown(uid, self._runtime.status(uid))

    def usage(self, uid: str) -> Usage | None:
        return self._runtime.usage(uid)

    def moving(self, uid: str) -> Moving:
        return self._mover.moving(uid)

    async def look(self, pod: Pod) -> None:
        """What the pod says of a move, which may be another at any time."""
        status = self._runtime.status(pod.uid)
        waits = status is not None and status.state == "Incoming"
        if waits and not pod.being_deleted and _definition(pod).memory is not None:
            # An agent that is not there any more has begun it.
            await self._resume(pod, await self._order(pod))
        elif waits and not pod.being_deleted and not self._mover.is_prepared(pod.uid):
            await self._mover.prepare(pod, await self._order(pod))
        await self._mover.look(pod)

    async def start(self, pod: Pod) -> None:
        order = await self._order(pod)
        if order.definition.incoming is not None:
            await self._mover.prepare(pod, order)
        elif order.definition.memory is not None:
            await self._resume(pod, order)
        else:
            await self._runtime.start(order)

    def begins_to_resume(self, uid: str) -> None:
        """Before that is said: whoever finds that it was said, and has not begun it, comes after one that may have."""
        self._resuming.add(uid)

    async def _resume(self, pod: Pod, order: Order) -> None:
        """Once, if at all. Before it is booted from its disks the memory that knows other ones is gone for good."""
        source = order.definition.memory
        assert source is not None, "asked only for what has one"
        try:
            if self._runtime.forgets and pod.uid not in self._resuming and resumes(pod):
                raise Unfit("its node was restarted while it was resumed, and does not know how far it was")
            self._resuming.add(pod.uid)
            path = await self._volumes.memory(pod, source.claim)
        except Unfit as unfit:
            return await self._boot(order, None, str(unfit))
        try:
            await self._runtime.restore(order, path)
        except Unfit as unfit:
            await self._boot(order, path, str(unfit))
        return None

    async def _boot(self, order: Order, path: Path | None, why: str) -> None:
        await self._runtime.discard_memory(path)
        definition = msgspec.structs.replace(order.definition, memory=None)
        await self._runtime.start(msgspec.structs.replace(order, definition=definition, not_resumed_because=why))

    async def go_on(self, uid: str) -> None:
        await self._runtime.go_on(uid)

    async def _order(self, pod: Pod) -> Order:
        definition = _definition(pod)
        if definition.instance.namespace != pod.namespace:
            # Who it is decides from whom it takes memory (named_shape): never anybody of another namespace.
            said = f"{definition.instance.namespace}/{definition.instance.name}"
            raise Refused(reasons.UNSUPPORTED, f"the pod says that it is for instance {said}, and is in namespace {pod.namespace}")
        return Order(pod.uid, definition, await self._volumes.resolve(pod, definition))

    async def adopt(self, pod: Pod, *, taken_over: bool = False) -> None:
        """The API says that it runs. Real guests were found when the runtime was opened; simulated ones are made up again, unless
        they had been given away."""
        report = report_of(pod)
        if isinstance(self._runtime, SimulatedRuntime) and report is not None and report.state in ("Running", "Paused"):
            if await self._mover.found(pod, taken_over=taken_over):
                return
            started = report.started_at.timestamp() if report.started_at else None
            order = Order(pod.uid, _definition(pod), {})
            # Who stood still only to be saved is not paused: it is saved as what it was, or goes on.
            paused = report.state == "Paused" and (
                report.reason != reasons.SAVING_MEMORY or pod.annotations.get(labels.PAUSE) == "true"
            )
            self._runtime.adopt(order, paused=paused, started_at=started)

    async def shut_down(self, uid: str) -> None:
        await self._runtime.shut_down(uid)

    async def remove(self, uid: str) -> None:
        async with self._mover.removing(uid):
            await self._runtime.remove(uid)
        await self._mover.forget(uid)
        self._resuming.discard(uid)

    async def pause(self, uid: str) -> None:
        await self._mover.paused(uid, True)
        await self._runtime.pause(uid)

    async def resume(self, uid: str) -> None:
        await self._mover.paused(uid, False)
        await self._runtime.resume(uid)

    async def log(self, uid: str, *, follow: bool = False) -> AsyncIterator[bytes]:
        return await self._runtime.log(uid, follow=follow)

    async def console(self, uid: str) -> Console:
        return await self._runtime.console(uid)

    async def probe(self, uid: str, probe: Probe) -> bool:
        return await self._runtime.probe(uid, probe)


def from_memory(pod: Pod) -> bool:
    """Whether its guest is to go on from saved memory."""
    return labels.GUEST in pod.annotations and _definition(pod).memory is not None


def resumes(pod: Pod) -> bool:
    """Whether its node has said that it goes on from saved memory: before it does."""
    report = report_of(pod)
    return report is not None and report.reason == reasons.RESUMING


def _definition(pod: Pod) -> GuestDefinition:
    try:
        found = definition_of(pod)
    except msgspec.MsgspecError as error:
        raise Refused(reasons.UNSUPPORTED, f"what the pod says of its guest cannot be read: {error}") from error
    assert found is not None, "asked only for pods that have one"
    return found
