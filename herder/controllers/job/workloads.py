"""The workload of a pod and its replicas, kept ready from caches: thousands of jobs are grouped by them at each pass.

What was found out is kept until something that it was made of changes. Nothing is looked at twice for that: each object knows by
its uid, and by that of its controller, what it is part of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any, Final

import msgspec

from herder.api.core import Pod, ReplicaSet
from herder.api.meta import Identified
from herder.controllers.job.scales import Answer, Scales
from herder.kube.cache import BY_OWNER, Cache, Change, Index, Owner, Stored, owned, view_of
from herder.kube.discovery import Discovery
from herder.kube.kit import Kit
from herder.kube.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    INSTANCES,
    MACHINES,
    PODS,
    POOLS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Key,
    Resource,
)
from herder.rules.jobs.budgets import Target
from herder.rules.jobs.replicas import PodState, Replicas, count_replicas, holds_guest, is_kept_off, pod_state
from herder.rules.jobs.workload import (
    DAEMON_SET,
    DEPLOYMENT,
    INSTANCE,
    KNOWN,
    MACHINE,
    POOL,
    REPLICA_SET,
    STATEFUL_SET,
    WITHOUT_SCALE,
    Controller,
    GroupKind,
    NoScale,
    Scale,
    Top,
    Workload,
    controller_named,
    describe,
    top_of,
)

# A workload by its namespace and uid.
Id = tuple[str, str]
CACHED: Final[dict[GroupKind, Resource[Any]]] = {
    DEPLOYMENT: DEPLOYMENTS,
    REPLICA_SET: REPLICA_SETS,
    STATEFUL_SET: STATEFUL_SETS,
    DAEMON_SET: DAEMON_SETS,
    INSTANCE: INSTANCES,
    MACHINE: MACHINES,
    POOL: POOLS,
}


def _controller_name(stored: Stored[Any]) -> tuple[str, ...]:
    owner = stored.controller
    return (_named(stored.key.namespace, owner.api_version, owner.kind, owner.name),) if owner is not None else ()


def _named(namespace: str, api_version: str, kind: str, name: str) -> str:
    return f"{namespace}/{api_version.rpartition('/')[0]}/{kind}/{name}"


# By what their controller is called, whatever version the reference says: for budgets, which name it without a uid.
BY_CONTROLLER: Index[Any] = Index("controller's name", _controller_name, attrgetter("owners"))


class _Group(msgspec.Struct):
    """A workload with all that belongs to it."""

    top: Top
    workload: Workload
    replicas: Replicas
    pods: tuple[Key, ...]
    # What a controller of somebody else's said; None for one that is cached.
    answer: Answer | None
    # By the direct controllers of pods that were asked about.
    asked: dict[Owner, Workload]
    # Until something that it was made of has changed.
    valid: bool = True


class _Answered(msgspec.Struct, frozen=True, gc=False):
    """What was answered about a pod in this very state."""

    pod: Stored[Pod]
    group: _Group
    workload: Workload


class Workloads:
    def __init__(self, kit: Kit, discovery: Discovery) -> None:
        self._pods: Cache[Pod] = kit.caches.of(PODS)
        self._caches: dict[GroupKind, Cache[Any]] = {kind: kit.caches.of(resource) for kind, resource in CACHED.items()}
        self._owned = [self._caches[kind] for kind in (REPLICA_SET, INSTANCE, MACHINE)]
        self.scales = Scales(kit, discovery, lambda namespace, controller: self._forget(namespace, controller.uid))
        self._groups: dict[tuple[str, Controller], _Group] = {}
        self._answered: dict[Key, _Answered] = {}
        # Which groups are made of the object with this uid, or wait for one of this name.
        self._made_of: dict[Id, dict[tuple[str, Controller], None]] = {}
        self._handlers: list[Callable[[Id], None]] = []
        for cache in (self._pods, *self._owned):
            cache.add_index(BY_OWNER)
            cache.add_index(BY_CONTROLLER)
        for kind, cache in self._caches.items():
            cache.subscribe(partial(self._owner_changed, kind))
        self._pods.subscribe(self._pod_changed)

    def subscribe(self, handler: Callable[[Id], None]) -> None:
        """Called with a workload that somebody has asked about, once what was answered may not be so any more."""
        self._handlers.append(handler)

    # --- asking ------------------------------------------------------------------------------------------------------------------

    def of(self, pod: Stored[Pod]) -> Workload | None:
        """None for a bare pod: nobody makes another one in its place."""
        known = self._answered.get(pod.key)
        if known is not None and known.pod is pod and known.group.valid:
            return known.workload
        owner = pod.controller
        if owner is None:
            return None
        group, workload = self._find(pod.key.namespace, owner)
        if group.answer is None:
            # Who has to be asked is asked each time: the answer grows old.
            self._answered[pod.key] = _Answered(pod, group, workload)
        return workload

    def replicas(self, workload: Workload) -> Replicas:
        return self._group_of(workload).replicas

    def pods(self, workload: Workload) -> tuple[Key, ...]:
        """Those of its replicas that are there."""
        return self._group_of(workload).pods

    def pods_of_target(self, namespace: str, target: Target) -> list[Key]:
        """Of a workload that is known by name only: one of a known kind, or whatever else pods or those who keep them name."""
        if (target.group, target.kind) in KNOWN:
            thing = self.get((target.group, target.kind), namespace, target.name)
            uids = [thing.uid] if thing is not None else []
        else:
            name = _named(namespace, f"{target.group}/", target.kind, target.name)
            caches = (self._pods, *self._owned)
            below = (cache.stored(key) for cache in caches for key in cache.keys_by(BY_CONTROLLER, name))
            controllers = (stored.controller for stored in below if stored is not None)
            uids = list(dict.fromkeys(one.uid for one in controllers if one is not None))
        return sorted(pod.key for uid in uids for pod in self._gather(namespace, uid)[0])

    # --- what the rules ask for --------------------------------------------------------------------------------------------------

    def get(self, kind: GroupKind, namespace: str, name: str) -> Identified | None:
        return view_of(self._caches[kind].stored(Key(namespace, name)))

    def scale(self, controller: Controller, namespace: str) -> Scale | NoScale:
        return self.scales.get(namespace, controller)

    def replica_sets(self, namespace: str, uid: str) -> Iterable[ReplicaSet]:
        found = (view_of(stored) for stored in self._controlled(self._caches[REPLICA_SET], namespace, uid))
        return [one for one in found if one is not None]

    # --- finding ---------------------------------------------------------------------------------------------------------------

    def _find(self, namespace: str, owner: Owner) -> tuple[_Group, Workload]:
        direct = controller_named(owner)
        group = self._group(namespace, top_of(direct, namespace, self), direct)
        workload = group.asked.get(owner)
        if workload is None:
            workload = group.asked[owner] = msgspec.structs.replace(group.workload, controller=direct)
            self._note(namespace, direct.uid, (namespace, group.top.controller))
        return group, workload

    def _group_of(self, workload: Workload) -> _Group:
        itself = Controller(workload.api_version, workload.kind, workload.name, workload.uid)
        group = self._groups.get((workload.namespace, itself))
        if group is not None and group.answer is None:
            return group
        return self._group(workload.namespace, top_of(workload.controller, workload.namespace, self), workload.controller)

    def _group(self, namespace: str, top: Top, direct: Controller) -> _Group:
        group = self._groups.get((namespace, top.controller))
        if group is not None and group.answer is not None and group.answer != self.scale(top.controller, namespace):
            self._forget(namespace, top.controller.uid)
            group = None
        return self._make(namespace, top, direct) if group is None else group

    def _make(self, namespace: str, top: Top, direct: Controller) -> _Group:
        pods, touched, off = self._gather(namespace, top.controller.uid)
        states = [state for pod in pods if (state := _state(pod)) is not None]
        views = [view for pod in pods if (view := view_of(pod)) is not None]
        workload = describe(direct, top, namespace, views, self)
        asks = top.thing is None and not top.problem and top.controller.group_kind not in WITHOUT_SCALE
        expected = workload.replicas - off if workload.replicas is not None and off else workload.replicas
        group = _Group(
            top=top,
            workload=workload,
            replicas=count_replicas(expected, states),
            pods=tuple(sorted(pod.key for pod in pods)),
            answer=self.scale(top.controller, namespace) if asks else None,
            asked={},
        )
        place = namespace, top.controller
        self._groups[place] = group
        for uid in touched:
            self._note(namespace, uid, place)
        if top.problem:
            # It may come, or another one may under its name.
            self._note(namespace, _by_name(top.controller.group_kind, top.controller.name), place)
        return group

    def _gather(self, namespace: str, uid: str) -> tuple[list[Stored[Pod]], list[str], int]:
        """The pods below an object that have not ended, the uids of all between them, and how many machines are kept off. Step by
        step, and never the same twice: somebody may have written a circle of owners."""
        pods = list(self._live_pods(namespace, uid))
        touched, off = [uid], 0
        for kind in (REPLICA_SET, INSTANCE):
            for between in self._controlled(self._caches[kind], namespace, uid):
                touched.append(between.uid)
                pods += self._live_pods(namespace, between.uid)
        for machine in self._controlled(self._caches[MACHINE], namespace, uid):
            instances = list(self._controlled(self._caches[INSTANCE], namespace, machine.uid))
            below = [pod for instance in instances for pod in self._live_pods(namespace, instance.uid)]
            touched += [machine.uid, *(instance.uid for instance in instances)]
            pods += below
            off += not below and self._is_kept_off(machine)
        return pods, touched, off

    def _live_pods(self, namespace: str, uid: str) -> Iterator[Stored[Pod]]:
        for stored in self._controlled(self._pods, namespace, uid):
            pod = view_of(stored)
            # One that cannot be read is there, as far as anybody knows.
            if pod is None or (pod_state(pod) is not None and self._is_replica(stored, pod)):
                yield stored

    def _is_replica(self, stored: Stored[Pod], pod: Pod) -> bool:
        owner = stored.controller
        kind = controller_named(owner).group_kind if owner is not None else None
        if owner is None or kind != INSTANCE:
            # These have no pods of their own, whatever a pod says.
            return kind not in (DEPLOYMENT, MACHINE, POOL)
        instance = view_of(self._caches[INSTANCE].stored(Key(stored.key.namespace, owner.name)))
        return holds_guest(pod, instance if instance is not None and instance.uid == owner.uid else None)

    def _is_kept_off(self, machine: Stored[Any]) -> bool:
        view = view_of(machine)
        return view is not None and is_kept_off(view, view_of(self._caches[INSTANCE].stored(machine.key)))

    def _controlled(self, cache: Cache[Any], namespace: str, uid: str) -> Iterator[Stored[Any]]:
        for key in cache.keys_by(BY_OWNER, owned(namespace, uid)):
            stored = cache.stored(key)
            owner = stored.controller if stored is not None else None
            if stored is not None and owner is not None and owner.uid == uid:
                yield stored

    # --- forgetting --------------------------------------------------------------------------------------------------------------

    def _note(self, namespace: str, uid: str, place: tuple[str, Controller]) -> None:
        self._made_of.setdefault((namespace, uid), {})[place] = None

    def _pod_changed(self, change: Change[Pod]) -> None:
        self._answered.pop(change.key, None)
        self._changed(change)

    def _owner_changed(self, kind: GroupKind, change: Change[Any]) -> None:
        if change.old is None or change.new is None:
            self._forget(change.key.namespace, _by_name(kind, change.key.name))
        self._changed(change)

    def _changed(self, change: Change[Any]) -> None:
        for state in (change.old, change.new):
            if state is not None:
                self._forget(change.key.namespace, state.uid)
                owner = state.controller
                if owner is not None:
                    self._forget(change.key.namespace, owner.uid)

    def _forget(self, namespace: str, uid: str) -> None:
        for place in self._made_of.pop((namespace, uid), ()):
            group = self._groups.pop(place, None)
            if group is None:
                continue
            group.valid = False
            for handler in self._handlers:
                handler(group.workload.id)


def _by_name(kind: GroupKind, name: str) -> str:
    """In place of a uid: no uid looks like that."""
    return f"{kind[0]}/{kind[1]}/{name}"


def _state(stored: Stored[Pod]) -> PodState | None:
    pod = view_of(stored)
    if pod is None:
        return PodState(stored.key.name, stored.uid, terminating=stored.deleting)
    return pod_state(pod)
