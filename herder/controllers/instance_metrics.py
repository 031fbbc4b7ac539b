"""What is counted of instances, for Prometheus: how long they take from phase to phase, and how often those of a pool start and
stop (seed 003). The histograms have KubeVirt's names and buckets, and the pool as a further label.

Nothing is counted from the list with which a term begins: what is there was counted by who led then. A pool is named only where it
exists, by its uid: whoever writes a machine could otherwise make up as many series as they like.
"""

from __future__ import annotations

import asyncio
from typing import Any, get_args
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Histogram

from herder.api.kinds import VirtualMachine, VirtualMachineInstance, VirtualMachinePool
from herder.api.kinds.instance import InstancePhase
from herder.kube.cache import Change, Stored, view_of
from herder.kube.kit import Kit, Runs
from herder.kube.resources import INSTANCES, MACHINES, POOLS, Key
from herder.rules.instances.pool_label import is_pool
from herder.rules.instances.transitions import seen_between
from herder.rules.plans import moment

SECONDS = (0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 90, 120, 180, 300, 600, 1200, 1800, 3600)
# Of an instance that is in no pool.
NO_POOL = Key("", "")
_POOL = ("namespace", "vmpool")


class _Families:
    """Made once for a registry: a process that leads a second time goes on counting where it was."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, about: str, *names: str) -> Histogram:
            return Histogram(name, about, ("phase", *names, *_POOL), buckets=SECONDS, registry=registry)

        self.from_creation = histogram(
            "kubevirt_vmi_phase_transition_time_from_creation_seconds", "From the creation of an instance to a phase."
        )
        self.from_last_phase = histogram(
            "kubevirt_vmi_phase_transition_time_seconds", "From one phase of an instance to the next.", "last_phase"
        )
        self.from_deletion = histogram(
            "kubevirt_vmi_phase_transition_time_from_deletion_seconds", "From when an instance was asked to end to its end."
        )
        self.starts = Counter("herder_pool_vm_starts", "Instances of a pool that ran for the first time.", _POOL, registry=registry)
        self.stops = Counter("herder_pool_vm_stops", "Instances of a pool that have ended.", _POOL, registry=registry)
        # From zero: whoever watches for an increase does not see the first of a series that was not there.
        for phase in get_args(InstancePhase):
            self.from_creation.labels(phase, *NO_POOL)

        # Of each pool, what it has: looking through all of them for each one that goes would take too long.
        self._series: dict[Key, set[tuple[Counter | Histogram, tuple[str, ...]]]] = {}

    def begin(self, pool: Key) -> None:
        self.count(self.starts, pool, 0)
        self.count(self.stops, pool, 0)

    def count(self, family: Counter, pool: Key, times: int = 1) -> None:
        self._note(family, pool, pool)
        family.labels(*pool).inc(times)

    def observe(self, family: Histogram, seconds: float | None, pool: Key, *phases: str) -> None:
        if seconds is not None:
            self._note(family, pool, (*phases, *pool))
            family.labels(*phases, *pool).observe(seconds)

    def forget(self, pool: Key) -> None:
        for family, values in self._series.pop(pool, ()):
            family.remove(*values)

    def forget_pools(self) -> None:
        for pool in tuple(self._series):
            self.forget(pool)

    def _note(self, family: Counter | Histogram, pool: Key, values: tuple[str, ...]) -> None:
        if pool != NO_POOL:
            self._series.setdefault(pool, set()).add((family, values))


_made: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


class InstanceMetrics:
    def __init__(self, kit: Kit) -> None:
        families = _made.get(kit.registry)
        if families is None:
            families = _made[kit.registry] = _Families(kit.registry)
        self._families = families
        self._world = kit.world
        self._machines = kit.caches.of(MACHINES)
        self._pools = kit.caches.of(POOLS)
        self._instances = kit.caches.of(INSTANCES)
        # Of each instance whose machine is gone before it is, by its uid: the pool of that machine, and the pool's uid.
        self._left: dict[str, tuple[Key, str]] = {}

    @classmethod
    def start(cls, kit: Kit) -> Runs:
        self = cls(kit)
        self._pools.subscribe(self._pool_changed)
        self._machines.subscribe(self._machine_changed)
        self._instances.subscribe(self._instance_changed)
        kit.at_end(self._end)
        return self

    async def run(self) -> None:
        """All is done as changes come."""
        await asyncio.get_running_loop().create_future()

    def _end(self) -> None:
        """Who does not lead does not hear of pools that are deleted. The next leader counts them from zero."""
        self._families.forget_pools()

    def _pool_changed(self, change: Change[VirtualMachinePool]) -> None:
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            self._families.forget(change.key)
        if new is not None and (old is None or new.uid != old.uid):
            self._families.begin(change.key)

    def _machine_changed(self, change: Change[VirtualMachine]) -> None:
        instance = self._instances.stored(change.key)
        if change.old is None or change.new is not None or instance is None:
            return
        if (pool := _pool_by(change.old)) and _owner_uid(instance) == change.old.uid:
            self._left[instance.uid] = pool

    def _instance_changed(self, change: Change[VirtualMachineInstance]) -> None:
        old, new = change.old, change.new
        if old is None:
            return
        before, after = view_of(old), view_of(new)
        if before is not None and (after is not None or new is None):
            self._count(before, after, self._pool(old))
        if new is None or new.uid != old.uid:
            self._left.pop(old.uid, None)

    def _pool(self, instance: Stored[VirtualMachineInstance]) -> Key:
        machine = self._machines.stored(instance.key)
        of_machine = machine is not None and machine.uid == _owner_uid(instance)
        key, uid = (_pool_by(machine) if of_machine and machine is not None else self._left.get(instance.uid)) or (NO_POOL, "")
        pool = self._pools.stored(key)
        return key if pool is not None and pool.uid == uid else NO_POOL

    def _count(self, before: VirtualMachineInstance, after: VirtualMachineInstance | None, pool: Key) -> None:
        seen, families = seen_between(before, after, moment(self._world.now())), self._families
        for one in seen.transitions:
            families.observe(families.from_creation, one.from_creation, pool, one.phase)
            families.observe(families.from_last_phase, one.from_last_phase, pool, one.phase, one.last_phase or "")
            families.observe(families.from_deletion, one.from_deletion, pool, one.phase)
        if pool != NO_POOL and seen.started:
            families.count(families.starts, pool)
        if pool != NO_POOL and seen.stopped:
            families.count(families.stops, pool)


def _owner_uid(stored: Stored[Any]) -> str:
    owner = stored.controller
    return owner.uid if owner is not None else ""


def _pool_by(machine: Stored[VirtualMachine]) -> tuple[Key, str] | None:
    """The pool that the machine says it is of, and its uid."""
    owner = machine.controller
    if owner is None or not is_pool(owner):
        return None
    return Key(machine.key.namespace, owner.name), owner.uid
