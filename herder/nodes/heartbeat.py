"""Keeps a Node registered and alive: its labels and status, and a Lease that is renewed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from herder.api import labels
from herder.api.core import Node
from herder.api.world import World, micro_timestamp
from herder.kube.client import STRATEGIC_PATCH, Client
from herder.kube.errors import AlreadyExists, KubeError, NotFound
from herder.kube.resources import LEASES, NODES, Key
from herder.nodes.leaving import NoTenants, Tenants, is_left, let_go, say_not_ready
from herder.nodes.node import LEASE_LASTS, Document, NodeSettings, metadata_changes, node_document, node_status
from herder.nodes.runtimes.base import Host

LEASE_NAMESPACE = "kube-node-lease"
RETRY_AFTER = 1.0
# What is ended within this is not worth a word.
AT_ONCE = 0.5
HOLD_EVERY = 10.0

log = structlog.get_logger()


class Heartbeat:
    def __init__(
        self,
        client: Client,
        world: World,
        settings: NodeSettings,
        host: Host,
        tenants: Tenants | None = None,
        turns: asyncio.Semaphore | None = None,
        renew_every: Callable[[], float] | None = None,
        *,
        is_new: bool = False,
        comes_back: bool = True,
        disk_pressure: Callable[[], bool] = lambda: False,
    ) -> None:
        """`tenants` are what runs here. A Node that was deleted means that its guests may be started elsewhere, so none may be
        left before the node goes, or is registered anew. `turns` are for those who register by the thousand: an API server takes
        only so many requests at once. `is_new`: it is known that there is no such Node yet, so nobody need be asked. `comes_back`:
        a Node that was deleted is registered anew."""
        self._client = client
        self._world = world
        self._settings = settings
        self._host = host
        self._key = Key("", settings.name)
        self._tenants = tenants or NoTenants()
        self._comes_back = comes_back
        self._turns = turns or asyncio.Semaphore()
        self._is_new = is_new
        # One of many may have to speak less often as they become more.
        self._renew_every = renew_every or (lambda: settings.renew_every)
        self._disk_pressure = disk_pressure
        self._uid = ""
        # When the finalizer was last put there: who takes it away again and again gets it back once in a while.
        self._held_at = -HOLD_EVERY
        self._look = asyncio.Event()
        self._lease = Key(LEASE_NAMESPACE, settings.name)
        self.registered = asyncio.Event()

    def node_seen(self, node: Node | None) -> None:
        """The Node as others left it; None where they deleted it. One that was taken for lost says at once that it is not."""
        if self._uid and (node is None or node.uid != self._uid or _taken_for_lost(node) or self._is_left(node)):
            self._look.set()

    def _is_left(self, node: Node) -> bool:
        return is_left(node) and (node.being_deleted or asyncio.get_running_loop().time() >= self._held_at + HOLD_EVERY)

    def tell_again(self) -> None:
        """The node's status is another: now, and not when it is due."""
        self._look.set()

    def _status(self, known: Node | None) -> Document:
        return node_status(self._settings, self._host, known, self._world.now(), disk_pressure=self._disk_pressure())

    async def run(self) -> None:
        """For as long as it is let: an API server that is away is waited for."""
        while True:
            try:
                async with self._turns:
                    deleted = await self._register()
                if deleted is not None:
                    await self._leave(deleted)
                    if self._comes_back:
                        continue
                    return
                self._tenants.admit()
                self.registered.set()
                await self._renew_for(self._settings.status_every)
            except KubeError as error:
                log.warning("the node could not be renewed, will try again", node=self._settings.name, error=str(error))
                await asyncio.sleep(RETRY_AFTER)

    async def _renew_for(self, seconds: float) -> None:
        """Then the whole status is said again."""
        end = asyncio.get_running_loop().time() + seconds
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._renew_every()):
                    await self._look.wait()
            if self._look.is_set() or asyncio.get_running_loop().time() >= end:
                return
            await self._renew()

    async def _register(self) -> Node | None:
        """The Node where somebody deletes it: it has to be left first."""
        self._look.clear()
        if self._is_new and (made := await self._make()) is not None:
            self._uid, self._is_new = made.uid, False
            await self._begin_lease()
            return None
        self._is_new = False
        node = await self._client.find(NODES, self._key)
        if node is None or (self._uid and node.uid != self._uid):
            await self._tenants.end_all(polite=False)
        node = node or await self._make() or await self._client.get(NODES, self._key)
        self._uid = node.uid
        if node.being_deleted:
            return node
        node = await self._hold(node)
        patch: Document = {"status": self._status(node)}
        await self._client.patch(NODES, self._key, patch, subresource="status", content_type=STRATEGIC_PATCH)
        await self._renew()
        return None

    async def _hold(self, node: Node) -> Node:
        """Our labels, and our finalizer, in one write. Others' stay as they are."""
        changes: Document = {**metadata_changes(self._settings, self._host, node)}
        if labels.NODE_FINALIZER not in node.finalizers:
            self._held_at = asyncio.get_running_loop().time()
            changes["finalizers"] = [labels.NODE_FINALIZER]
        if not changes:
            return node
        patch: Document = {"metadata": {"uid": node.uid, **changes}}
        return await self._client.patch(NODES, self._key, patch, content_type=STRATEGIC_PATCH)

    async def _leave(self, node: Node) -> None:
        """What runs here is ended, while others hear that we are there; then the Node may go. Whoever dies in between goes on."""
        log.warning("the node is being deleted: its guests are ended", node=self._settings.name)
        ending = asyncio.ensure_future(self._tenants.end_all(polite=True))
        try:
            await asyncio.wait([ending], timeout=AT_ONCE)
            if not ending.done():
                await say_not_ready(self._client, node, self._world.now())
            while not ending.done():
                await self._renew()
                await asyncio.wait([ending], timeout=self._renew_every())
            await ending
            await let_go(self._client, node)
            await self._until_gone(node)
        finally:
            ending.cancel()

    async def _until_gone(self, node: Node) -> None:
        """Somebody else may have a finalizer on it, too."""
        while (found := await self._client.find(NODES, self._key)) is not None and found.uid == node.uid:
            await self._renew()
            await asyncio.sleep(RETRY_AFTER)

    async def _make(self) -> Node | None:
        """With its status, in one write. None where there is such a Node already."""
        document = node_document(self._settings, self._host)
        document["status"] = self._status(None)
        try:
            return await self._client.create(NODES, document)
        except AlreadyExists:
            return None

    async def _renew(self) -> None:
        try:
            await self._client.patch(LEASES, self._lease, {"spec": self._renewal()})
        except NotFound:
            with contextlib.suppress(AlreadyExists):
                await self._make_lease()

    async def _begin_lease(self) -> None:
        """That of a new node is seldom there already."""
        try:
            await self._make_lease()
        except AlreadyExists:
            await self._renew()

    async def _make_lease(self) -> None:
        # It goes with its Node: else one stays for each node that there ever was.
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._settings.name, "uid": self._uid}
        metadata = {"name": self._lease.name, "namespace": self._lease.namespace, "ownerReferences": [owner]}
        await self._client.create(LEASES, {"metadata": metadata, "spec": self._renewal()})

    def _renewal(self) -> Document:
        return {
            "holderIdentity": self._settings.name,
            "leaseDurationSeconds": max(1, round(self._renew_every() * LEASE_LASTS)),
            "renewTime": micro_timestamp(self._world.now()),
        }


def _taken_for_lost(node: Node) -> bool:
    return any(one.type == "Ready" and one.status == "Unknown" for one in node.status.conditions)
