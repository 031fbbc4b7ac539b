"""The few ways in which controllers touch the cluster. Each is safe to repeat, and each waits until the cache has seen what it did:
the next look then starts from there, and not from before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from herder.api import reasons
from herder.api.meta import Identified
from herder.kube.cache import Cache, Stored
from herder.kube.client import JSON_PATCH, STRATEGIC_PATCH, Client, Propagation
from herder.kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound
from herder.kube.events import Recorder
from herder.kube.resources import Key, written
from herder.rules.plans import Delete, Document, Event

K = TypeVar("K", bound=Identified)
# Conditions that are not said with the status, but under a field manager of their own: by the kit (herder/kube/failures.py), by the
# controller that empties nodes, and by that of suspensions.
_APART = (reasons.SYNCHRONIZED, reasons.EVACUATING, reasons.SUSPENDED)


class _Shown(msgspec.Struct, frozen=True):
    """Of a whole object nothing but its status is read."""

    status: Document | None = None


_shown = msgspec.json.Decoder(_Shown)


class InTheWay(KubeError):
    """An object of the name that we need, which belongs to someone else. It may go away."""

    passing = True


class Hands:
    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    async def create(self, cache: Cache[Any], document: Document, owner_uid: str) -> None:
        """Names follow from the owner: one that exists already is ours, made by us or by who led before us, or in the way."""
        key = Key(document["metadata"].get("namespace", ""), document["metadata"]["name"])
        resource = cache.resource
        try:
            version = (await self._client.create(written(resource), document)).metadata.resource_version
        except AlreadyExists:
            found = await self._client.get(resource, key)
            if found.controller_uid != owner_uid:
                raise InTheWay(f"{resource.kind} {key} exists and belongs to someone else") from None
            version = found.metadata.resource_version
        await cache.wait_seen(version or "")

    async def delete(
        self, cache: Cache[Any], namespace: str, wanted: Delete, version: str = "", propagation: Propagation | None = None
    ) -> None:
        """That very object; another one of its name stays. With a version also one that has changed since."""
        key, grace = Key(namespace, wanted.name), wanted.grace_period_seconds
        try:
            await self._client.delete(
                cache.resource, key, uid=wanted.uid, resource_version=version, grace_period_seconds=grace, propagation=propagation
            )
        except NotFound:
            return
        except Conflict:
            found = await self._client.find(cache.resource, key)
            if found is None or found.uid != wanted.uid or version:
                return
            # It is the one that was meant: somebody was faster with something else, and it is to be tried again.
            raise
        await cache.wait_gone(key, wanted.uid)

    async def patch(self, cache: Cache[Any], stored: Stored[Any], patch: Document, subresource: str = "") -> None:
        """With the identity of the object, so that another one of its name is left alone."""
        metadata = {**patch.get("metadata", {}), "uid": stored.uid}
        wanted = {**patch, "metadata": metadata}
        made = await self._client.patch(written(cache.resource), stored.key, wanted, subresource=subresource)
        await cache.wait_seen(made.metadata.resource_version or "")

    async def merge_status(self, cache: Cache[Any], stored: Stored[Any], status: Document) -> None:
        """Parts of a status that has other writers, too. A strategic patch: of lists with keys only the entries that it names."""
        patch = {"metadata": {"uid": stored.uid}, "status": status}
        made = await self._client.patch(
            written(cache.resource), stored.key, patch, subresource="status", content_type=STRATEGIC_PATCH
        )
        await cache.wait_seen(made.metadata.resource_version or "")

    async def hold(self, cache: Cache[K], stored: Stored[K], finalizer: str) -> Stored[K]:
        """As it is then. With the version: a list is replaced as a whole, and somebody may have added to it."""
        finalizers = [*stored.view.finalizers, finalizer]
        await self.patch(cache, stored, {"metadata": {"finalizers": finalizers, "resourceVersion": str(stored.version)}})
        return cache.stored(stored.key) or stored

    async def let_go(self, cache: Cache[K], stored: Stored[K], finalizer: str) -> None:
        """Only our own finalizer, where it stands: others may come and go meanwhile."""
        place = f"/metadata/finalizers/{stored.view.finalizers.index(finalizer)}"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": stored.uid},
            {"op": "test", "path": place, "value": finalizer},
            {"op": "remove", "path": place},
        ]
        try:
            await self._client.patch(cache.resource, stored.key, patch, content_type=JSON_PATCH)
        except NotFound:
            return
        except Invalid as error:
            raise Conflict(409, "Conflict", str(error)) from error

    async def show(self, cache: Cache[Any], stored: Stored[Any], status: Document, *, unchanged: bool = False) -> None:
        """The status, where it is another one. By server-side apply: what we no longer say is taken away. `unchanged`: only of what
        we have seen. Where a status tells more than can be seen anew, an old one that arrives late must not come in its place."""
        if self.is_shown(stored, status):
            return
        wanted = {"metadata": _identity(stored, unchanged), "status": status}
        try:
            made = await self._client.apply(written(cache.resource), stored.key, wanted, subresource="status")
        except NotFound:
            return
        await cache.wait_seen(made.metadata.resource_version or "")

    def is_shown(self, stored: Stored[Any], status: Document) -> bool:
        """Whether the object has this status already."""
        return _own(_shown.decode(stored.raw).status or {}) == _own(status)

    async def mark(
        self, cache: Cache[Any], stored: Stored[Any], conditions: Sequence[Document], *, unchanged: bool = False
    ) -> None:
        """Conditions of something whose status is another's to write; all others stay. `unchanged`: only of what we have seen."""
        patch = {"metadata": _identity(stored, unchanged), "status": {"conditions": list(conditions)}}
        made = await self._client.patch(
            written(cache.resource), stored.key, patch, subresource="status", content_type=STRATEGIC_PATCH
        )
        await cache.wait_seen(made.metadata.resource_version or "")

    async def note(self, cache: Cache[Any], stored: Stored[Any], conditions: Sequence[Document], manager: str) -> None:
        """The conditions of this manager, in place of those that it has noted before; all others stay."""
        wanted = {"metadata": _identity(stored, False), **({"status": {"conditions": list(conditions)}} if conditions else {})}
        try:
            made = await self._client.apply(written(cache.resource), stored.key, wanted, subresource="status", manager=manager)
        except NotFound:
            return
        await cache.wait_seen(made.metadata.resource_version or "")

    def tell(self, thing: Identified, events: tuple[Event, ...]) -> None:
        for event in events:
            record = self._recorder.normal if event.type == "Normal" else self._recorder.warning
            record(thing, event.reason, event.message)


def _own(status: Document) -> Document:
    """Without what others say of it."""
    if "conditions" not in status:
        return status
    conditions = [one for one in status["conditions"] if one.get("type") not in _APART]
    rest = {name: value for name, value in status.items() if name != "conditions"}
    return {**rest, "conditions": conditions} if conditions else rest


def _identity(stored: Stored[Any], unchanged: bool) -> Document:
    """That very object, and that very state of it."""
    return {"uid": stored.uid, **({"resourceVersion": str(stored.version)} if unchanged else {})}
