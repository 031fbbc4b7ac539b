"""The machines of each pool, made ready for its plan as they change, and not anew at each look: a pool may have thousands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from herder.api.core import Node, PersistentVolumeClaim
from herder.api.kinds import VirtualMachine, VirtualMachineInstance
from herder.api.memory import MemoryState, machine_of, memory_claim
from herder.kube.cache import Cache, Change, Index, Owner, Stored, owned, view_of
from herder.kube.resources import Key
from herder.rules.instances.pool_label import is_pool
from herder.rules.pools.gather import node_state
from herder.rules.pools.member import Member, member_of
from herder.rules.pools.selection.inputs import NodeState
from herder.rules.suspension.memory import state_in

# A pool by its namespace and uid: another pool of its name is not its owner.
PoolId = tuple[str, str]
Wake = Callable[[Key], None]


def _pool_name(name: str) -> str:
    """Of the pool that would give this name; empty where none would."""
    prefix, _, digits = name.rpartition("-")
    return prefix if digits.isascii() and digits.isdigit() else ""


def _prefixes(stored: Stored[Any]) -> tuple[str, ...]:
    prefix = _pool_name(stored.key.name)
    return (f"{stored.key.namespace}/{prefix}",) if prefix else ()


# Machines whose name a pool of that name would give, whoever owns them.
BY_POOL_NAME: Index[Any] = Index("pool-name", _prefixes, lambda stored: stored.key)


def _owners_without_controller(stored: Stored[Any]) -> tuple[str, ...]:
    return () if stored.controller is not None else tuple(owned(stored.key.namespace, owner.uid) for owner in stored.owners)


# By owner, machines that nobody controls: a pool has thousands that it controls, and looks here for those that it may take over.
BY_OWNER_WITHOUT_CONTROLLER: Index[Any] = Index("owner-without-controller", _owners_without_controller, attrgetter("owners"))


def pool_owner(owners: tuple[Owner, ...], *, controller: bool) -> Owner | None:
    return next((owner for owner in owners if owner.controller == controller and is_pool(owner)), None)


class Members:
    def __init__(
        self,
        machines: Cache[VirtualMachine],
        instances: Cache[VirtualMachineInstance],
        nodes: Cache[Node],
        claims: Cache[PersistentVolumeClaim],
        wake: Wake,
    ) -> None:
        self._machines = machines
        self._instances = instances
        self._claims = claims
        self._wake = wake
        self._of: dict[PoolId, dict[str, Member]] = {}
        # Which pool each machine is counted with, and what that pool is called.
        self._pool_of: dict[Key, tuple[PoolId, str]] = {}
        self.nodes: dict[str, NodeState] = {}
        machines.add_index(BY_POOL_NAME)
        machines.add_index(BY_OWNER_WITHOUT_CONTROLLER)
        nodes.subscribe(self._node_changed)
        machines.subscribe(self._machine_changed)
        instances.subscribe(lambda change: self._look(change.key))
        claims.subscribe(self._claim_changed)

    def of(self, namespace: str, uid: str) -> Mapping[str, Member]:
        return self._of.get((namespace, uid), {})

    def memory_of(self, machine: VirtualMachine) -> MemoryState | None:
        """What its own claim holds of its guest."""
        return state_in(machine.uid, self._claims.get(Key(machine.namespace, memory_claim(machine.name))))

    def _claim_changed(self, change: Change[PersistentVolumeClaim]) -> None:
        machine = machine_of(change.key.name)
        if machine:
            self._look(Key(change.key.namespace, machine))

    def _machine_changed(self, change: Change[VirtualMachine]) -> None:
        if change.old is None or change.new is None or change.old.owners != change.new.owners:
            # A name is taken or free again, or somebody was detached or attached.
            self._wake_by_name(change.key)
        self._look(change.key)

    def _wake_by_name(self, key: Key) -> None:
        prefix = _pool_name(key.name)
        if prefix:
            self._wake(Key(key.namespace, prefix))

    def _look(self, key: Key) -> None:
        """Again at this machine, whatever has changed of it."""
        stored = self._machines.stored(key)
        owner = pool_owner(stored.owners, controller=True) if stored is not None else None
        known = self._pool_of.get(key)
        if known is not None and (owner is None or known[0][1] != owner.uid):
            self._forget(key, *known)
        if stored is None or owner is None:
            return
        machine = view_of(stored)
        if machine is None:
            return
        pool = (key.namespace, owner.uid)
        member = member_of(owner.name, machine, view_of(self._instances.stored(key)), self.memory_of(machine))
        members = self._of.setdefault(pool, {})
        before = members.get(key.name)
        members[key.name] = member
        self._pool_of[key] = (pool, owner.name)
        if before is None or not _alike(before, member):
            self._wake(Key(key.namespace, owner.name))

    def _forget(self, key: Key, pool: PoolId, name: str) -> None:
        del self._pool_of[key]
        members = self._of.get(pool, {})
        members.pop(key.name, None)
        if not members:
            self._of.pop(pool, None)
        self._wake(Key(key.namespace, name))

    def _node_changed(self, change: Change[Node]) -> None:
        node = view_of(change.new)
        name = change.key.name
        before = self.nodes.get(name)
        if node is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = node_state(node)
        after = self.nodes.get(name)
        if (before is not None and before.answers) != (after is not None and after.answers):
            self._wake_those_on(name)

    def _wake_those_on(self, node: str) -> None:
        for key, (pool, name) in self._pool_of.items():
            member = self._of[pool].get(key.name)
            if member is not None and member.node == node:
                self._wake(Key(key.namespace, name))


def _alike(before: Member, after: Member) -> bool:
    """But for the version, which changes with every word about a machine."""
    if before.resource_version == after.resource_version:
        return before == after
    return msgspec.structs.replace(before, resource_version=after.resource_version) == after
