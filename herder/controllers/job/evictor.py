"""Ends the pod of a job, and no other one of its name."""

from __future__ import annotations

import asyncio
from typing import Final

from herder.api.core import Pod
from herder.kube.cache import Cache
from herder.kube.client import Client, Propagation
from herder.kube.errors import NotFound
from herder.kube.resources import PODS, Key
from herder.rules.jobs.execution.plan import Evict
from herder.rules.plans import Document

# Until the cache has seen that it goes: else the next look would try again.
PATIENCE: Final = 5.0


class Evictor:
    def __init__(self, client: Client, pods: Cache[Pod]) -> None:
        self._client = client
        self._pods = pods

    async def evict(self, wanted: Evict) -> None:
        """KubeError where it is refused."""
        key = Key(wanted.namespace, wanted.name)
        try:
            if wanted.policy == "Delete":
                # A deletion asks no budget: so it is asked first.
                await self._post(key, wanted, {"dryRun": ["All"]})
                await self._delete(key, wanted)
            else:
                await self._post(key, wanted, {})
        except NotFound:
            return
        await self._seen(key, wanted.uid)

    async def _post(self, key: Key, wanted: Evict, more: Document) -> None:
        options = {**wanted.options, **more, "preconditions": {**(wanted.options.get("preconditions") or {}), "uid": wanted.uid}}
        document = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": wanted.name, "namespace": wanted.namespace},
            "deleteOptions": options,
        }
        await self._client.post(PODS, key, "eviction", document)

    async def _delete(self, key: Key, wanted: Evict) -> None:
        options = wanted.options
        given = options.get("preconditions") or {}
        await self._client.delete(
            PODS,
            key,
            uid=wanted.uid,
            resource_version=str(given.get("resourceVersion") or ""),
            grace_period_seconds=options.get("gracePeriodSeconds"),
            propagation=_propagation(options),
        )

    async def _seen(self, key: Key, uid: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while (stored := self._pods.stored(key)) is not None and stored.uid == uid and not stored.deleting:
                    live = await self._client.find(PODS, key)
                    if live is None or live.uid != uid:
                        await self._pods.wait_gone(key, uid)
                        return
                    await self._pods.wait_seen(live.metadata.resource_version or "")
        except TimeoutError:
            return


def _propagation(options: Document) -> Propagation | None:
    """orphanDependents is the old form of it."""
    if options.get("propagationPolicy") is not None:
        return options["propagationPolicy"]
    orphan = options.get("orphanDependents")
    return None if orphan is None else "Orphan" if orphan else "Background"
