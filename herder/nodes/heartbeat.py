"""Keeps a Node registered and alive: its labels and status, and a Lease that is renewed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from herder.api.core import Node
from herder.api.world import World, micro_timestamp
from herder.kube.client import STRATEGIC_PATCH, Client
from herder.kube.errors import AlreadyExists, KubeError, NotFound
from herder.kube.resources import LEASES, NODES, Key
from herder.nodes.node import LEASE_LASTS, Document, NodeSettings, label_changes, node_document, node_status
from herder.nodes.runtimes.base import Host

LEASE_NAMESPACE = "kube-node-lease"
RETRY_AFTER = 1.0

log = structlog.get_logger()


async def _nothing_to_end() -> None:
    pass


class Heartbeat:
    def __init__(
        self,
        client: Client,
        world: World,
        settings: NodeSettings,
        host: Host,
        fenced: Callable[[], Awaitable[None]] = _nothing_to_end,
        turns: asyncio.Semaphore | None = None,
        renew_every: Callable[[], float] | None = None,
        *,
        is_new: bool = False,
    ) -> None:
        """`fenced` ends whatever runs here. A Node that was deleted means that its guests may be started elsewhere, so none may be
        left before the node is registered anew. `turns` are for those who register by the thousand: an API server takes only so
        many requests at once. `is_new`: it is known that there is no such Node yet, so nobody need be asked."""
        self._client = client
        self._world = world
        self._settings = settings
        self._host = host
        self._key = Key("", settings.name)
        self._fenced = fenced
        self._turns = turns or asyncio.Semaphore()
        self._is_new = is_new
        # One of many may have to speak less often as they become more.
        self._renew_every = renew_every or (lambda: settings.renew_every)
        self._uid = ""
        self._look = asyncio.Event()
        self._lease = Key(LEASE_NAMESPACE, settings.name)
        self.registered = asyncio.Event()

    def node_seen(self, node: Node | None) -> None:
        """The Node as others left it; None where they deleted it. One that was taken for lost says at once that it is not."""
        if self._uid and (node is None or node.uid != self._uid or _taken_for_lost(node)):
            self._look.set()

    async def run(self) -> None:
        """For as long as it is let: an API server that is away is waited for."""
        while True:
            try:
                async with self._turns:
                    await self._register()
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

    async def _register(self) -> None:
        self._look.clear()
        if self._is_new and (made := await self._make()) is not None:
            self._uid, self._is_new = made.uid, False
            await self._begin_lease()
            return
        self._is_new = False
        node = await self._client.find(NODES, self._key)
        if node is None or (self._uid and node.uid != self._uid):
            await self._fenced()
        node = node or await self._make() or await self._client.get(NODES, self._key)
        self._uid = node.uid
        if changes := label_changes(self._settings, self._host, node.labels):
            node = await self._client.patch(NODES, self._key, {"metadata": {"labels": changes}})
        patch: Document = {"status": node_status(self._settings, self._host, node, self._world.now())}
        await self._client.patch(NODES, self._key, patch, subresource="status", content_type=STRATEGIC_PATCH)
        await self._renew()

    async def _make(self) -> Node | None:
        """With its status, in one write. None where there is such a Node already."""
        document = node_document(self._settings, self._host)
        document["status"] = node_status(self._settings, self._host, None, self._world.now())
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
        metadata = {"name": self._lease.name, "namespace": self._lease.namespace}
        await self._client.create(LEASES, {"metadata": metadata, "spec": self._renewal()})

    def _renewal(self) -> Document:
        return {
            "holderIdentity": self._settings.name,
            "leaseDurationSeconds": max(1, round(self._renew_every() * LEASE_LASTS)),
            "renewTime": micro_timestamp(self._world.now()),
        }


def _taken_for_lost(node: Node) -> bool:
    return any(one.type == "Ready" and one.status == "Unknown" for one in node.status.conditions)
