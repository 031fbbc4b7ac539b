"""What is counted of pools, for Prometheus. The series of a pool go with it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge

from herder.api.kinds import VirtualMachinePool
from herder.api.world import World
from herder.kube.cache import Cache, Change, view_of
from herder.kube.kit import Kit
from herder.kube.resources import Key

_LABELS = ["namespace", "vmpool"]


class _Families:
    """Made once for a registry: a process may lead a second time."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.healed = Counter(
            "herder_pool_healed", "Machines that were deleted with their volumes, to be made again.", _LABELS, registry=registry
        )
        self.rollout_age = Gauge(
            "herder_pool_rollout_age_seconds",
            "How long the template's revision has been rolled out; 0 once it is.",
            _LABELS,
            registry=registry,
        )
        self.replicas = Gauge("herder_pool_replicas", "Machines of the pool, by state.", [*_LABELS, "state"], registry=registry)


_made: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()
_STATES = ("desired", "current", "ready", "updated", "unavailable")


class PoolMetrics:
    def __init__(self, kit: Kit, pools: Cache[VirtualMachinePool]) -> None:
        families = _made.get(kit.registry)
        if families is None:
            families = _made[kit.registry] = _Families(kit.registry)
        self._families = families
        self._world: World = kit.world
        self._pools = pools
        # What is shown, and of which pool: another one may come under its name.
        self._known: dict[Key, str] = {}
        pools.subscribe(self._changed)
        kit.at_end(self._end)

    def healed(self, pool: VirtualMachinePool, times: int) -> None:
        """Unless the pool went meanwhile: nobody would take its series away again."""
        if self._known.get(Key(pool.namespace, pool.name)) == pool.uid:
            self._families.healed.labels(pool.namespace, pool.name).inc(times)

    def _changed(self, change: Change[VirtualMachinePool]) -> None:
        if change.new is None:
            self._remove(change.key)
        elif change.old is None:
            self._add(change.key, change.new.uid)

    def _add(self, key: Key, uid: str) -> None:
        self._known[key] = uid
        self._families.healed.labels(*key)
        self._families.rollout_age.labels(*key).set_function(lambda: self._rollout_age(key))
        for state in _STATES:
            self._families.replicas.labels(*key, state).set_function(lambda state=state: self._count(key, state))

    def _remove(self, key: Key) -> None:
        if self._known.pop(key, None) is None:
            return
        self._families.healed.remove(*key)
        self._families.rollout_age.remove(*key)
        for state in _STATES:
            self._families.replicas.remove(*key, state)

    def _end(self) -> None:
        """The term is over: who leads now shows them, and counts from zero. Who does not lead does not hear of pools that go."""
        for key in tuple(self._known):
            self._remove(key)

    def _rollout_age(self, key: Key) -> float:
        pool = view_of(self._pools.stored(key))
        rollout = pool.status.rollout if pool is not None and pool.status else None
        started = rollout.started_time if rollout is not None else None
        return max(0.0, self._world.now() - started.timestamp()) if started is not None else 0.0

    def _count(self, key: Key, state: str) -> int:
        pool = view_of(self._pools.stored(key))
        status = pool.status if pool is not None else None
        if pool is None or state == "desired":
            return pool.spec.replicas if pool is not None else 0
        return (getattr(status, "replicas" if state == "current" else f"{state}_replicas") or 0) if status is not None else 0
