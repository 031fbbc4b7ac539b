"""Rules about more than one object: which migrations of an instance there are, which policies have which selectors, which
pools name their volumes alike, and what PodMigrationJobs are about (`job_admission.py`).

Found by indexes over what is durable, and among the few writes that are on their way: of two that come together one is let in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from herder.api import registry
from herder.api.kinds import MigrationPolicy, VirtualMachineInstance, VirtualMachineInstanceMigration, VirtualMachinePool
from herder.api.problems import Problem
from herder.api.validation import is_judged_again
from herder.rules.admission import migration_problems, policy_problems, pool_advice, volume_names
from herder.rules.policies import Policies
from herder.server.request import User
from herder.server.served import Served
from herder.server.store import DELETED, Change, Record, Store
from herder.server.store.records import key_of

Document = dict[str, Any]
INSTANCES = registry.INSTANCE.crd_name
MIGRATIONS = registry.MIGRATION.crd_name
POLICIES = registry.POLICY.crd_name
POOLS = registry.POOL.crd_name
JOBS = registry.JOB.crd_name
JobProblems = Callable[[Document, Document | None, User], list[Problem]]
V = TypeVar("V")


class Others:
    def __init__(self, store: Store, job_problems: JobProblems) -> None:
        self._store = store
        self._job_problems = job_problems
        self._policies = Policies()
        # Keys of migrations by namespace and instance.
        self._moves: dict[tuple[str, str], set[str]] = {}
        # Names of pools by namespace and dataVolumeTemplate, and what each pool is found under.
        self._sharing: dict[tuple[str, str], set[str]] = {}
        self._volumes: dict[str, tuple[str, ...]] = {}
        for table, learn in ((POLICIES, self._on_policy), (MIGRATIONS, self._on_migration), (POOLS, self._on_pool)):
            for record in store.scan(table):
                learn(Change(table, "", record, None))
            store.listen(table, learn)

    def problems(self, served: Served, document: Document, old: Document | None, user: User) -> list[Problem]:
        if served.table == JOBS:
            return self._job_problems(document, old, user)
        if served.table == MIGRATIONS and old is not None:
            return []  # what they are about cannot be changed later
        if served.table == MIGRATIONS:
            return self._of_migration(document)
        if served.table != POLICIES or (old is not None and not is_judged_again(document, old)):
            return []
        return self._of_policy(document, old)

    def advice(self, served: Served, document: Document, old: Document | None) -> list[str]:
        """Of what is durable alone: two pools that come together may both go unwarned."""
        if served.table != POOLS or (old is not None and not is_judged_again(document, old)):
            return []
        namespace = document["metadata"]["namespace"]
        return pool_advice(document, old, lambda name: self._sharing.get((namespace, name), ()))

    def _of_migration(self, document: Document) -> list[Problem]:
        migration = msgspec.convert(document, VirtualMachineInstanceMigration)
        record = self._store.latest(INSTANCES, key_of(migration.namespace, migration.spec.vmi_name))
        instance = read_record(record, VirtualMachineInstance) if record is not None else None
        return migration_problems(migration, instance, self._migrations(migration.namespace, migration.spec.vmi_name))

    def _migrations(self, namespace: str, instance: str) -> Iterator[VirtualMachineInstanceMigration]:
        known = (self._store.latest(MIGRATIONS, key) for key in self._moves.get((namespace, instance), ()))
        coming = (record for record in self._store.on_their_way(MIGRATIONS) if record.namespace == namespace)
        yield from readable((*known, *coming), VirtualMachineInstanceMigration)

    def _of_policy(self, document: Document, old: Document | None) -> list[Problem]:
        policy = msgspec.convert(document, MigrationPolicy)
        before = msgspec.convert(old, MigrationPolicy) if old is not None else None
        # Of those that are durable, the ones that still are as they were; and the ones that will be.
        coming = Policies(readable(self._store.on_their_way(POLICIES), MigrationPolicy)).same_selectors(policy)
        settled = [name for name in self._policies.same_selectors(policy) if not self._store.is_changing(POLICIES, name)]
        return policy_problems(policy, before, sorted({*settled, *coming}))

    def _on_policy(self, change: Change) -> None:
        policy = read_record(change.record, MigrationPolicy)
        if change.kind == DELETED or policy is None:
            self._policies.remove(change.record.name)
        else:
            self._policies.add(policy)

    def _on_pool(self, change: Change) -> None:
        record = change.record
        pool = read_record(record, VirtualMachinePool) if change.kind != DELETED else None
        names = volume_names(pool) if pool is not None else ()
        before = self._volumes.get(record.key, ())
        if names == before:
            return
        for name in before:
            pools = self._sharing[record.namespace, name]
            pools.discard(record.name)
            if not pools:
                del self._sharing[record.namespace, name]
        for name in names:
            self._sharing.setdefault((record.namespace, name), set()).add(record.name)
        self._volumes[record.key] = names
        if not names:
            del self._volumes[record.key]

    def _on_migration(self, change: Change) -> None:
        migration = read_record(change.record, VirtualMachineInstanceMigration)
        if migration is None:
            return
        # The instance of a migration never changes.
        place = (migration.namespace, migration.spec.vmi_name)
        keys = self._moves.setdefault(place, set())
        if change.kind == DELETED:
            keys.discard(change.record.key)
        else:
            keys.add(change.record.key)
        if not keys:
            del self._moves[place]


def readable(records: Iterable[Record | None], view: type[V]) -> Iterator[V]:
    found = (read_record(record, view) for record in records if record is not None)
    return (one for one in found if one is not None)


def read_record(record: Record, view: type[V]) -> V | None:
    """What cannot be read cannot be in the way."""
    try:
        return msgspec.json.decode(record.raw, type=view)
    except msgspec.MsgspecError:
        return None
