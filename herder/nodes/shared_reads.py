"""Reads that pods share: fifty guests of one boot image need not read it fifty times.

A read is good for every pod that was known here, as it is now, when the read began: what a user wrote before the pod is in it. What
was missing is asked for again each time.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from herder.api.core import Pod
from herder.api.meta import Identified
from herder.kube.cache import Cache
from herder.kube.client import Client
from herder.kube.resources import Key, Resource, key_of

V = TypeVar("V", bound=Identified)
# For as long as a crowd of pods takes to start. Secrets should not stay in memory without need.
KEPT = 5.0


class SharedReads:
    def __init__(self, client: Client) -> None:
        self._client = client
        # Nothing is shared before somebody says where pods are known from.
        self._pods: Cache[Pod] | None = None
        # With the state up to which pods were known when it began.
        self._reads: dict[tuple[str, Key], tuple[int, asyncio.Task[Any]]] = {}

    def follow(self, pods: Cache[Pod]) -> None:
        self._pods = pods

    async def find(self, resource: Resource[V], key: Key, pod: Pod) -> V | None:
        name = (resource.qualified, key)
        known, task = self._reads.get(name, (0, None))
        if task is None or not self._was_known(pod, known):
            task = asyncio.create_task(self._client.find(resource, key))
            self._keep(name, self._pods.version if self._pods is not None else 0, task)
        # Whoever is cancelled leaves it to the others.
        return await asyncio.shield(task)

    def _was_known(self, pod: Pod, known: int) -> bool:
        stored = self._pods.stored(key_of(pod)) if self._pods is not None else None
        # The second: a server that was restored from a backup counts from there again.
        return self._pods is not None and stored is not None and stored.version <= known <= self._pods.version

    def _keep(self, name: tuple[str, Key], known: int, task: asyncio.Task[Any]) -> None:
        self._reads[name] = (known, task)

        def forget() -> None:
            if self._reads.get(name, (0, None))[1] is task:
                del self._reads[name]

        def done(task: asyncio.Task[Any]) -> None:
            if task.cancelled() or task.exception() is not None or task.result() is None:
                forget()

        task.add_done_callback(done)
        asyncio.get_running_loop().call_later(KEPT, forget)
