"""Keeps the status of every MigrationPolicy: whether it is in use, and how many running instances it applies to.

Which policy a migration runs with is not decided here, but by the same index (herder/rules/policies). The counts follow each event,
which costs next to nothing; what costs are writes. So a policy whose counts change is written a moment later, and all of them
together at a bounded rate: while thousands of instances start, each status is some seconds behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from herder.api.core import Namespace
from herder.api.kinds import MigrationPolicy, VirtualMachineInstance
from herder.controllers.hands import Hands
from herder.kube.bucket import Bucket, Rate
from herder.kube.cache import Change, Stored, view_of
from herder.kube.controller import DONE, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import INSTANCES, NAMESPACES, POLICIES, Key
from herder.rules.plans import Document
from herder.rules.policies import Usage
from herder.rules.policies.status import policy_status

WORKERS = 2
# Seconds after which counts that have changed are written.
SOON = 1.0
WRITES = Rate(burst=50, per_second=20.0)


class Pace(msgspec.Struct, frozen=True):
    soon: float = SOON
    writes: Rate = WRITES


class PolicyStatuses:
    name = "policies"

    def __init__(self, kit: Kit, queue: Queue, pace: Pace | None = None) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._policies = kit.caches.of(POLICIES)
        self._queue = queue
        self._pace = pace or Pace()
        self._clock = asyncio.get_running_loop().time
        self._bucket = Bucket(self._pace.writes, self._clock())
        self._usage = Usage()

    @classmethod
    def start(cls, kit: Kit) -> Work:
        queue = kit.queue(cls.name)
        self = cls(kit, queue)
        kit.caches.of(NAMESPACES).subscribe(self._namespace_changed)
        self._policies.subscribe(self._policy_changed)
        kit.caches.of(INSTANCES).subscribe(self._instance_changed)
        enqueue(self._policies, queue)
        return kit.work(self, queue, WORKERS, of=self._policies)

    async def reconcile(self, key: Key) -> Result:
        stored = self._policies.stored(key)
        if stored is None or stored.deleting or self._hands.is_shown(stored, self._status(stored)):
            return DONE
        await asyncio.sleep(self._bucket.reserve(self._clock()))
        # What is right when it is written, not when it was asked for.
        stored = self._policies.stored(key)
        if stored is not None:
            await self._hands.show(self._policies, stored, self._status(stored))
        return DONE

    def _status(self, stored: Stored[MigrationPolicy]) -> Document:
        name = stored.key.name
        return policy_status(stored.view, self._usage.unused(name), self._usage.counts(name), self._world.now())

    def _policy_changed(self, change: Change[MigrationPolicy]) -> None:
        old, new = view_of(change.old), view_of(change.new)
        if new is None:
            self._usage.remove(change.key.name)
        elif old is None or (old.uid, old.spec) != (new.uid, new.spec):
            # Our own writes come back here: they change nothing of what is counted.
            self._usage.add(new)
        self._write_soon()

    def _instance_changed(self, change: Change[VirtualMachineInstance]) -> None:
        self._usage.put_instance((change.key.namespace, change.key.name), _labels_of_running(change.new))
        self._write_soon()

    def _namespace_changed(self, change: Change[Namespace]) -> None:
        self._usage.put_namespace(change.key.name, change.new.labels if change.new is not None else {})
        self._write_soon()

    def _write_soon(self) -> None:
        for name in self._usage.take_changed():
            self._queue.add_after(Key("", name), self._pace.soon)


def _labels_of_running(stored: Stored[VirtualMachineInstance] | None) -> Mapping[str, str] | None:
    """None for one that does not run."""
    instance = view_of(stored)
    status = instance.status if instance is not None else None
    return stored.labels if stored is not None and status is not None and status.phase == "Running" else None
