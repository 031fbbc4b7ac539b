"""Follows reservations (seed 004): who took them, when their time is over, whether their node is still one for them. The scheduler
places them; what is free of each it counts itself (herder/rules/reservations)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Gauge

from herder.api.core import Node, Pod
from herder.api.kinds import ReservationView
from herder.api.labels import RESERVATION_ALLOCATED
from herder.controllers.hands import Hands
from herder.kube.cache import Cache, Change, Index, Stored, view_of
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import NODES, PODS, RESERVATIONS, Key
from herder.rules.matching.resources import amounts
from herder.rules.placement import Offer, node_event
from herder.rules.plans import Document
from herder.rules.reservations import allocation_of, plan_reservation
from herder.rules.reservations.allocation import took

WORKERS = 4
# That a changed spec was seen, and nothing else: whoever opens a reservation sends somebody there, and both are told in one write.
SEEN_WITHIN = 2.0
FINISHED = ("Succeeded", "Failed")
PHASES = ("Pending", "Available", "Succeeded", "Failed")
_ANNOTATION = RESERVATION_ALLOCATED.encode()


def taken_reservations(stored: Stored[Pod]) -> tuple[str, ...]:
    """The bytes first: hardly any pod has the annotation, and to read them all for it would cost more than anything else here."""
    if _ANNOTATION not in stored.raw:
        return ()
    allocation = allocation_of(stored.view.annotations)
    return (allocation.name,) if allocation is not None else ()


def _placed(stored: Stored[ReservationView]) -> tuple[str, ...]:
    node = stored.view.status.node_name
    return (node,) if node else ()


BY_RESERVATION: Index[Pod] = Index("reservation", taken_reservations)
BY_HELD_NODE: Index[ReservationView] = Index("held node", _placed)


def takers_of(pods: Cache[Pod], reservation: ReservationView) -> tuple[Pod, ...]:
    """The pods that have it, the oldest first. `pods` has BY_RESERVATION."""
    found = pods.by(BY_RESERVATION, reservation.name)
    takers = (pod for pod in found if pod.spec.node_name and pod.status.phase not in FINISHED and took(pod, reservation))
    return tuple(sorted(takers, key=_by_age))


def _by_age(pod: Pod) -> tuple[float, str]:
    born = pod.metadata.creation_timestamp
    return (born.timestamp() if born is not None else 0.0), pod.name


class Reservations:
    name = "reservations"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._reservations = kit.caches.of(RESERVATIONS)
        self._pods = kit.caches.of(PODS)
        self._nodes = kit.caches.of(NODES)
        self._pods.add_index(BY_RESERVATION)
        self._reservations.add_index(BY_HELD_NODE)
        self._clock = asyncio.get_running_loop().time
        # Version, and when it was first looked at, of those of which only `observedGeneration` is behind.
        self._behind: dict[Key, tuple[int, float]] = {}
        ReservationMetrics(kit, self)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._reservations, queue)
        enqueue(self._pods, queue, _reservations_of)
        self._nodes.subscribe(lambda change: self._node_changed(change, queue))
        return kit.work(self, queue, WORKERS, of=self._reservations)

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        """Heartbeats do not matter; labels, taints and cordons do."""
        keys = self._reservations.keys_by(BY_HELD_NODE, change.key.name)
        if not keys:
            return
        before, after = view_of(change.old), view_of(change.new)
        if node_event(Offer.of(before) if before else None, Offer.of(after) if after else None) is not None:
            for key in keys:
                queue.add(key)

    async def reconcile(self, key: Key) -> Result:
        stored = self._reservations.stored(key)
        if stored is None:
            self._behind.pop(key, None)
            return DONE
        reservation = stored.view
        node = self._nodes.get(Key("", reservation.status.node_name or ""))
        plan = plan_reservation(reservation, node, takers_of(self._pods, reservation), self._world.now())
        if plan.status is not None:
            if (rest := self._rest(stored, plan.status)) > 0:
                return Later(rest if plan.next_look is None else min(rest, max(plan.next_look, 0.0)))
            await self._hands.show(self._reservations, stored, plan.status, unchanged=True)
        self._hands.tell(reservation, plan.events)
        if plan.delete is not None:
            await self._hands.delete(self._reservations, "", plan.delete)
        return Later(max(plan.next_look, 0.0)) if plan.next_look is not None else DONE

    def _rest(self, stored: Stored[ReservationView], status: Document) -> float:
        """How long it can wait to be written."""
        seen = {**status, "observedGeneration": stored.view.status.observed_generation}
        if self._hands.is_shown(stored, status) or not self._hands.is_shown(stored, seen):
            self._behind.pop(stored.key, None)
            return 0.0
        version, when = self._behind.get(stored.key, (0, 0.0))
        if version != stored.version:
            when = self._clock()
            self._behind[stored.key] = (stored.version, when)
        return when + SEEN_WITHIN - self._clock()

    def all(self) -> Iterable[ReservationView]:
        return self._reservations.list()


def _reservations_of(pod: Stored[Pod]) -> Iterable[Key]:
    return (Key("", name) for name in taken_reservations(pod))


class _Families:
    """Made once for a registry: a process that leads a second time goes on where it was."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.count = Gauge("herder_reservations", "Reservations, by phase.", ["phase"], registry=registry)
        self.held = Gauge(
            "herder_reserved_resources", "Room that reservations hold and nobody has taken yet.", ["resource"], registry=registry
        )


_made: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()
RESOURCES = ("cpu", "memory")


class ReservationMetrics:
    """Counted when somebody asks."""

    def __init__(self, kit: Kit, reservations: Reservations) -> None:
        families = _made.get(kit.registry)
        if families is None:
            families = _made[kit.registry] = _Families(kit.registry)
        self._families = families
        self._reservations = reservations
        for phase in PHASES:
            families.count.labels(phase).set_function(lambda phase=phase: self._count(phase))
        for resource in RESOURCES:
            families.held.labels(resource).set_function(lambda resource=resource: self._held(resource))
        kit.at_end(self._end)

    def _end(self) -> None:
        """The term is over: who leads now shows them."""
        for phase in PHASES:
            self._families.count.remove(phase)
        for resource in RESOURCES:
            self._families.held.remove(resource)

    def _count(self, phase: str) -> int:
        return sum((one.status.phase or "Pending") == phase for one in self._reservations.all())

    def _held(self, resource: str) -> float:
        """Processors in cores, memory in bytes, as Prometheus wants its units. As they report it: to count anew what thousands hold
        would keep everybody waiting while somebody looks."""
        statuses = [one.status for one in self._reservations.all() if one.status.phase == "Available"]
        amount = sum(_left(resource, status.allocatable or {}, status.allocated or {}) for status in statuses)
        return amount / 1000 if resource == "cpu" else float(amount)


def _left(resource: str, allocatable: Mapping[str, str | int | float], allocated: Mapping[str, str | int | float]) -> int:
    held, taken = (amounts({resource: one.get(resource, 0)})[resource] for one in (allocatable, allocated))
    return max(held - taken, 0)
