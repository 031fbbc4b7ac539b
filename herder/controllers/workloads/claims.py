"""Takes in what nobody manages and our selector finds, and lets go of what it no longer finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.kube.cache import BY_OWNER, Cache, Index, Stored, owned
from herder.kube.client import STRATEGIC_PATCH, Client
from herder.kube.errors import Conflict, Invalid, NotFound
from herder.kube.resources import Resource, key_of
from herder.rules.plans import Document
from herder.rules.workloads import claim
from herder.rules.workloads.claiming import Owner, controller_reference


def _orphan(stored: Stored[Any]) -> tuple[str, ...]:
    return () if stored.controller is not None else (stored.key.namespace,)


# By namespace: what nobody manages.
BY_ORPHAN: Index[Any] = Index("orphan", _orphan, lambda stored: stored.owners)


class Claims:
    def __init__(
        self,
        client: Client,
        owners: Resource[Any],
        cache: Cache[Any],
        *,
        may_have: Callable[[Any, Any], bool] = lambda owner, one: True,
        releases: bool = True,
    ) -> None:
        """`may_have`: what an owner asks of an object beside its selector. `releases`: whether it lets go of any."""
        self._client = client
        self._may_have = may_have
        self._releases = releases
        self._owners = owners
        self._cache = cache
        cache.add_index(BY_OWNER)
        cache.add_index(BY_ORPHAN)

    async def of(self, owner: Owner) -> None:
        """Afterwards what is to belong to it does, and nothing else."""
        candidates = [*self._cache.by(BY_OWNER, owned(owner.namespace, owner.uid)), *self._cache.by(BY_ORPHAN, owner.namespace)]
        found = claim(owner, candidates, lambda one: self._may_have(owner, one))
        if found.adopt and not await self._stays(owner):
            return
        reference = controller_reference(owner, self._owners.api_version, self._owners.kind)
        for one in found.adopt:
            await self._patch(one, {"ownerReferences": [reference]})
        for one in found.release if self._releases else ():
            await self._patch(one, {"ownerReferences": [{"$patch": "delete", "uid": owner.uid}]})

    async def _stays(self, owner: Owner) -> bool:
        """Asked live: what one that is being deleted took in now would be deleted with it."""
        fresh = await self._client.find(self._owners, key_of(owner))
        return fresh is not None and fresh.uid == owner.uid and not fresh.being_deleted

    async def _patch(self, one: Any, metadata: Document) -> None:
        try:
            patch = {"metadata": {**metadata, "uid": one.uid}}
            made = await self._client.patch(self._cache.resource, key_of(one), patch, content_type=STRATEGIC_PATCH)
        except NotFound:
            return
        except Invalid as error:
            # Somebody else was faster: two may not manage one object.
            raise Conflict(409, "Conflict", str(error)) from error
        await self._cache.wait_seen(made.metadata.resource_version)
