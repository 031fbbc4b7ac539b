"""Keeps VirtualMachineInstances: makes the pod that the guest runs in, and shows what becomes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from herder.api import labels, reasons
from herder.api.core import Node, Pod
from herder.api.kinds import VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.api.kinds.migration_state import MigrationState
from herder.controllers.hands import Hands
from herder.controllers.launchers import LAUNCHERS_OF, has_changed
from herder.controllers.migration.index import BY_INSTANCE, instance_of
from herder.controllers.nodes import BoundNodes
from herder.controllers.settings import ClusterSettings
from herder.controllers.suspensions import memory_key, write_record
from herder.kube.cache import BY_NODE, Cache, Change, Index, Stored, owned, view_of
from herder.kube.client import Selection
from herder.kube.controller import AGAIN, DONE, Later, Result, Work
from herder.kube.enqueue import controlled_by, enqueue
from herder.kube.errors import NotFound
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import (
    CLAIMS,
    CONFIG_MAPS,
    DATA_VOLUMES,
    INSTANCES,
    MACHINES,
    MIGRATIONS,
    NODES,
    PODS,
    SECRETS,
    Anything,
    Key,
)
from herder.rules.configuration import migration_configuration
from herder.rules.instances import InstancePlan, InstanceSnapshot, needs_of, plan_instance
from herder.rules.instances.needs import Found, claims_of
from herder.rules.instances.observed import trust
from herder.rules.instances.plan import launcher_of
from herder.rules.instances.pool_label import pool_label_of
from herder.rules.migratability.waiting import demanded_level, waits
from herder.rules.migration.phases import finished
from herder.rules.plans import Document
from herder.rules.suspension.memory import Memory, memory_in

WORKERS = 16


def _needs(stored: Stored[VirtualMachineInstance]) -> Iterable[str]:
    needs, namespace = needs_of(stored.view.spec), stored.key.namespace
    named = ((SECRETS, needs.secrets), (CONFIG_MAPS, needs.config_maps), (DATA_VOLUMES, needs.data_volumes))
    listed = [(resource, name) for resource, names in named for name in names]
    listed += [(CLAIMS, name) for name in claims_of(needs)]
    return [_need(resource, Key(namespace, name)) for resource, name in listed]


def _need(resource: Anything, key: Key) -> str:
    return f"{resource.qualified}/{key}"


def _awaited_level(stored: Stored[VirtualMachineInstance]) -> Iterable[str]:
    """Of a node that has no level yet nobody can say that it is too low: then it looks as if there were another reason."""
    status = stored.view.status
    reason = reasons.MIGRATABILITY_LEVEL_NOT_REACHED
    return (reason,) if status is not None and status.reason in (reason, reasons.UNSCHEDULABLE) else ()


# Which instances wait for a node with a high enough migratability level, or might.
BY_AWAITED_LEVEL: Index[Any] = Index("awaited level", _awaited_level)
# Which instances mount this Secret, ConfigMap, claim or DataVolume.
BY_NEED: Index[Any] = Index("need", _needs)


class Instances:
    name = "instances"

    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._instances = kit.caches.of(INSTANCES)
        self._pods = kit.caches.of(PODS)
        self._nodes = kit.caches.of(NODES)
        self._bound = BoundNodes(kit)
        self._claims = kit.caches.of(CLAIMS)
        self._volumes = kit.caches.of(DATA_VOLUMES)
        self._secrets = kit.caches.of(SECRETS)
        self._config_maps = kit.caches.of(CONFIG_MAPS)
        self._machines = kit.caches.of(MACHINES)
        self._migrations = kit.caches.of(MIGRATIONS)
        self._migrations.add_index(BY_INSTANCE)
        self._settings = ClusterSettings(kit)
        self._instances.add_index(BY_NEED)
        self._instances.add_index(BY_AWAITED_LEVEL)
        self._pods.add_index(LAUNCHERS_OF)
        self._pods.add_index(BY_NODE)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._instances, queue)
        enqueue(self._pods, queue, controlled_by(INSTANCES))
        enqueue(self._migrations, queue, lambda stored: (Key(stored.key.namespace, stored.view.spec.vmi_name),))
        for cache in (self._claims, self._volumes, self._secrets, self._config_maps):
            self._follow_need(cache, queue)
        self._nodes.subscribe(lambda change: self._node_changed(change, queue))
        self._machines.subscribe(lambda change: self._machine_changed(change, queue))
        self._settings.subscribe(lambda: self._look_at_awaiting(queue))
        return kit.work(self, queue, WORKERS, of=self._instances)

    def _follow_need(self, cache: Cache[Any], queue: Queue) -> None:
        resource = cache.resource
        enqueue(cache, queue, lambda stored: self._instances.keys_by(BY_NEED, _need(resource, stored.key)))

    def _node_changed(self, change: Change[Node], queue: Queue) -> None:
        """Nodes speak often. What matters is whether they answer, and whether they are fenced."""
        if _level(change.old) != _level(change.new):
            self._look_at_awaiting(queue)
        if trust(view_of(change.old)) == trust(view_of(change.new)):
            return
        for name in self._pods.keys_by(BY_NODE, change.key.name):
            if (pod := self._pods.stored(name)) is not None:
                for key in controlled_by(INSTANCES)(pod):
                    queue.add(key)

    def _machine_changed(self, change: Change[VirtualMachine], queue: Queue) -> None:
        if changes_pool(change) and change.key in self._instances:
            queue.add(change.key)

    def _look_at_awaiting(self, queue: Queue) -> None:
        """At those that wait for a level, or might."""
        for key in self._instances.keys_by(BY_AWAITED_LEVEL, reasons.MIGRATABILITY_LEVEL_NOT_REACHED):
            queue.add(key)

    async def reconcile(self, key: Key) -> Result:
        stored = self._instances.stored(key)
        if stored is None:
            return DONE
        plan = plan_instance(await self._snapshot(stored), self._world.now())
        if await self._knows_too_little(stored, plan):
            return AGAIN
        await self._carry_out(stored, plan)
        return DONE if plan.next_look is None else Later(plan.next_look)

    async def _knows_too_little(self, stored: Stored[VirtualMachineInstance], plan: InstancePlan) -> bool:
        """Whether something is there on whose absence the plan stands: the cache does not know yet."""
        namespace = stored.key.namespace
        if plan.gone is not None:
            pod = await self._client.find(PODS, Key(namespace, plan.gone))
            # Somebody else's pod may have the name by now.
            if pod is not None and _is_of(pod, stored.view):
                await self._pods.wait_seen(pod.metadata.resource_version or "")
                return True
        if plan.migration_gone is not None:
            listed = await self._client.list(MIGRATIONS, Selection(namespace=namespace))
            if any(one.uid == plan.migration_gone and not finished(one) for one in listed.items):
                return True
        return plan.forsaken is not None and await has_changed(self._client, self._pods, plan.forsaken)

    async def _carry_out(self, stored: Stored[VirtualMachineInstance], plan: InstancePlan) -> None:
        hands, namespace = self._hands, stored.key.namespace
        if plan.add_finalizer:
            stored = await hands.hold(self._instances, stored, labels.INSTANCE_FINALIZER)
        if plan.take_memory is not None:
            await write_record(hands, self._claims, memory_key(stored), plan.take_memory)
        if plan.drop_memory is not None:
            await hands.delete(self._claims, namespace, plan.drop_memory)
        if plan.create_pod is not None:
            await hands.create(self._pods, plan.create_pod, stored.uid)
        if plan.pause is not None:
            name, value = plan.pause
            await self._patch_pod(Key(namespace, name), {"metadata": {"annotations": {labels.PAUSE: value}}})
        for end in plan.delete_pods:
            await hands.delete(self._pods, namespace, end)
        if plan.node_label is not None:
            await hands.patch(self._instances, stored, {"metadata": {"labels": {labels.NODE_NAME: plan.node_label}}})
        if plan.status is not None:
            await hands.show(self._instances, stored, plan.status)
        for change in plan.patch_pods:
            await self._patch_pod(Key(namespace, change.name), change.patch)
        if plan.replace_pod is not None:
            end, version = plan.replace_pod
            await hands.delete(self._pods, namespace, end, version)
        if plan.remove_finalizer:
            await hands.let_go(self._instances, stored, labels.INSTANCE_FINALIZER)
        hands.tell(stored.view, plan.events)

    async def _patch_pod(self, key: Key, patch: Document) -> None:
        if (pod := self._pods.stored(key)) is not None:
            # That it is gone makes us look again.
            with contextlib.suppress(NotFound):
                await self._hands.patch(self._pods, pod, patch)

    async def _snapshot(self, stored: Stored[VirtualMachineInstance]) -> InstanceSnapshot:
        pods = sorted(self._launchers(stored), key=_age)
        nodes = await self._bound.of(pods)
        memory = await self._memory(stored) if not pods and labels.RESUME_FROM in stored.view.annotations else None
        looks_at_nodes = memory is not None or any(demanded_level(pod) and waits(pod) for pod in pods)
        return InstanceSnapshot(
            instance=stored.view,
            raw=stored.raw,
            pods=tuple(pods),
            nodes=nodes,
            found=self._found(stored),
            migration=self._migration(stored.key),
            settings=migration_configuration(self._settings.kubevirt()),
            migrations=frozenset(one.uid for one in self._migrations_of(stored.key) if not finished(one)),
            all_nodes=tuple(self._nodes.list()) if looks_at_nodes else (),
            memory=memory,
            pool=self._pool_of(stored),
        )

    async def _memory(self, stored: Stored[VirtualMachineInstance]) -> Memory | None:
        """That the claim is gone is asked of the API server itself: what the guest boots from decides."""
        key = memory_key(stored)
        claim = self._claims.get(key) or await self._client.find(CLAIMS, key)
        return memory_in(stored.view.controller_uid, claim)

    def _pool_of(self, stored: Stored[VirtualMachineInstance]) -> str | None:
        """None while its machine is not known: it may be gone, or not have been seen yet."""
        for key in controlled_by(MACHINES)(stored):
            machine = self._machines.stored(key)
            return _pool(machine) if machine is not None and machine.uid == stored.view.controller_uid else None
        return ""

    def _launchers(self, stored: Stored[VirtualMachineInstance]) -> list[Pod]:
        """And the one that has the guest, even where somebody took its label or its owner away: the guest runs on."""
        pods = self._pods.by(LAUNCHERS_OF, owned(stored.key.namespace, stored.uid))
        name = launcher_of(stored.view)
        if name is None or any(pod.name == name for pod in pods):
            return pods
        pod = self._pods.get(Key(stored.key.namespace, name))
        return [*pods, pod] if pod is not None and _is_of(pod, stored.view) else pods

    def _migrations_of(self, key: Key) -> list[VirtualMachineInstanceMigration]:
        return self._migrations.by(BY_INSTANCE, instance_of(key.namespace, key.name))

    def _migration(self, key: Key) -> MigrationState | None:
        """How the one that goes on stands, or the last one that began."""
        began = [
            (not (state.completed or False), one.status.start_timestamp, one.name, state)
            for one in self._migrations_of(key)
            if one.status is not None and (state := one.status.migration_state) is not None and one.status.start_timestamp
        ]
        return max(began, key=lambda one: one[:3])[3] if began else None

    def _found(self, stored: Stored[VirtualMachineInstance]) -> Found:
        needs, namespace = needs_of(stored.view.spec), stored.key.namespace
        claims = [(name, self._claims.get(Key(namespace, name))) for name in claims_of(needs)]
        volumes = [(name, self._volumes.get(Key(namespace, name))) for name in needs.data_volumes]
        return Found(
            secrets=frozenset(name for name in needs.secrets if Key(namespace, name) in self._secrets),
            config_maps=frozenset(name for name in needs.config_maps if Key(namespace, name) in self._config_maps),
            claims={name: claim for name, claim in claims if claim is not None},
            data_volumes={name: volume for name, volume in volumes if volume is not None},
        )


def _is_of(pod: Pod, instance: VirtualMachineInstance) -> bool:
    """By its owner, or by its identity as it was seen: names are anybody's."""
    active = (instance.status.active_pods if instance.status else None) or {}
    return pod.controller_uid == instance.uid or pod.uid in active


def _age(pod: Pod) -> tuple[Any, str]:
    return (pod.metadata.creation_timestamp, pod.name)


def changes_pool(change: Change[VirtualMachine]) -> bool:
    """Machines change often. What matters to their instances is which pool they belong to."""
    return _pool(change.old) != _pool(change.new)


def _pool(stored: Stored[VirtualMachine] | None) -> str:
    return pool_label_of(stored.controller, standby=labels.STANDBY in stored.labels) if stored is not None else ""


def _level(stored: Stored[Node] | None) -> str | None:
    return stored.labels.get(labels.MIGRATABILITY_LEVEL) if stored is not None else None
