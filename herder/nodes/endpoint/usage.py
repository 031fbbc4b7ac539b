"""What a node and each of its pods have taken so far: read from what runs them, whenever somebody asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from herder.api.core import Pod
from herder.api.world import World
from herder.nodes.runtimes.base import Usage
from herder.nodes.work import HasUsage, Work


class ContainerUsage(msgspec.Struct, frozen=True):
    name: str
    usage: Usage


class PodUsage(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    started_at: float  # seconds since the epoch
    usage: Usage
    containers: tuple[ContainerUsage, ...]


class NodeUsage(msgspec.Struct, frozen=True):
    node: str
    at: float  # seconds since the epoch
    measured_since: float
    # Of its pods: several nodes may share one machine, and then nobody else's work is this node's.
    usage: Usage
    pods: tuple[PodUsage, ...]


class Usages:
    """Of all nodes of a process."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._meters: dict[str, _Meter] = {}

    def keep(self, places: Collection[Collection[str]]) -> None:
        """The nodes of all of them: of others nothing need be known any more."""
        if len(self._meters) > sum(map(len, places)):
            self._meters = {node: meter for node, meter in self._meters.items() if any(node in nodes for nodes in places)}

    def measure(self, node: str, pods: Iterable[tuple[Pod, Work]]) -> NodeUsage:
        now = self._world.now()
        used = tuple(usage for pod, work in pods if (usage := _pod_usage(pod, work)) is not None)
        meter = self._meters.setdefault(node, _Meter(now))
        total = Usage(meter.read(used), sum(one.usage.memory_bytes for one in used))
        return NodeUsage(node, now, meter.since, total, used)


class _Meter:
    """A counter never falls: what a pod has taken stays counted when the pod is gone."""

    def __init__(self, since: float) -> None:
        self.since = since
        self._total = 0.0
        self._before: dict[str, float] = {}

    def read(self, pods: Iterable[PodUsage]) -> float:
        now = {pod.uid: pod.usage.cpu_seconds for pod in pods}
        self._total += sum(max(0.0, used - self._before.get(uid, 0.0)) for uid, used in now.items())
        self._before = now
        return self._total


def _pod_usage(pod: Pod, work: Work) -> PodUsage | None:
    """None where it does not run, or nobody can tell. What runs a pod knows it as one: its containers share it evenly."""
    status = work.status(pod.uid)
    usage = work.usage(pod.uid) if isinstance(work, HasUsage) else None
    containers = pod.spec.containers or ()
    if usage is None or status is None or not containers:
        return None
    each = Usage(usage.cpu_seconds / len(containers), usage.memory_bytes // len(containers))
    shares = tuple(ContainerUsage(container.name, each) for container in containers)
    return PodUsage(pod.namespace, pod.name, pod.uid, status.started_at or 0.0, usage, shares)
