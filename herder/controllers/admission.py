"""Rules about more than one object, for the webhook. They ask the API server itself: a cache that is a moment behind would refuse a
migration of an instance that was made just before."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
import structlog

from herder.api.kinds import MigrationPolicy, VirtualMachineInstanceMigration, VirtualMachinePool
from herder.api.problems import Problem
from herder.api.validation import is_judged_again
from herder.kube.cache import Cache, Caches
from herder.kube.cache.indexes import Index
from herder.kube.cache.stored import Stored
from herder.kube.client import Client, Selection
from herder.kube.errors import KubeError
from herder.kube.resources import INSTANCES, MIGRATIONS, POLICIES, POOLS, Key, Resource
from herder.kube.webhook.reviews import Question
from herder.rules.admission import migration_problems, policy_problems, pool_advice, volume_names
from herder.rules.policies import Policies

log = structlog.get_logger()
# Less than the API server waits for us.
PATIENCE = 3.0


class AmongOthers:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, question: Question) -> list[Problem]:
        """Where the API server does not answer, nothing is held against the object: the controllers look again."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._problems(question)
        except (KubeError, TimeoutError) as error:
            log.warning("not judged among others", resource=question.resource.resource, name=question.name, why=str(error))
            return []

    async def _problems(self, question: Question) -> list[Problem]:
        new, old = question.object, question.old_object
        if new is None or (old is not None and not is_judged_again(new, old)):
            return []
        if _is_about(question, MIGRATIONS) and question.operation == "CREATE":
            return await self._migration(question)
        return await self._policy(question) if _is_about(question, POLICIES) else []

    async def _migration(self, question: Question) -> list[Problem]:
        migration = msgspec.convert(question.object, VirtualMachineInstanceMigration)
        instance = await self._client.find(INSTANCES, Key(question.namespace, migration.spec.vmi_name))
        others = await self._client.list(MIGRATIONS, Selection(question.namespace)) if instance is not None else None
        return migration_problems(migration, instance, others.items if others is not None else ())

    async def _policy(self, question: Question) -> list[Problem]:
        policy = msgspec.convert(question.object, MigrationPolicy)
        old = msgspec.convert(question.old_object, MigrationPolicy) if question.old_object is not None else None
        there = Policies((await self._client.list(POLICIES)).items)
        return policy_problems(policy, old, there.same_selectors(policy))


def _found_under(stored: Stored[VirtualMachinePool]) -> list[str]:
    return [f"{stored.key.namespace}/{name}" for name in volume_names(stored.view)]


BY_VOLUME: Index[VirtualMachinePool] = Index("dataVolumeTemplate", _found_under)


class AdviceAmongPools:
    """Whether another pool names its volumes alike: a warning, for which a cache that is a moment behind is good enough, and far
    cheaper than to read all pools of the namespace, templates and all, for each write. It is filled when the first pool is
    written."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._pools: Cache[VirtualMachinePool] | None = None

    async def __call__(self, question: Question) -> list[str]:
        new, old = question.object, question.old_object
        if new is None or not _is_about(question, POOLS) or (old is not None and not is_judged_again(new, old)):
            return []
        pools, namespace = await self._synced(), question.namespace
        return pool_advice(new, old, lambda name: [key.name for key in pools.keys_by(BY_VOLUME, f"{namespace}/{name}")])

    async def _synced(self) -> Cache[VirtualMachinePool]:
        """Where the API server does not answer, nobody is warned."""
        if self._pools is None:
            self._pools = self._caches.of(POOLS)
            self._pools.add_index(BY_VOLUME)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._pools.wait_synced()
        return self._pools


def _is_about(question: Question, resource: Resource[Any]) -> bool:
    return (question.kind.group, question.kind.kind) == (resource.group, resource.kind)
