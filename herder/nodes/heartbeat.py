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
from herder.nodes.node import Document, NodeSettings, label_changes, node_document, node_status
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
    ) -> None:
        """`fenced` ends whatever runs here. A Node that was deleted means that its guests may be started elsewhere, so none may be
        left before the node is registered anew."""
        self._client = client
        self._world = world
        self._settings = settings
        self._host = host
        self._key = Key("", settings.name)
        self._fenced = fenced
        self._uid = ""
        self._look = asyncio.Event()
        self._lease = Key(LEASE_NAMESPACE, settings.name)
        self.registered = asyncio.Event()

    def node_seen(self, uid: str) -> None:
        """The Node as others left it; empty where they deleted it."""
        if self._uid and uid != self._uid:
            self._look.set()

    async def run(self) -> None:
        """For as long as it is let: an API server that is away is waited for."""
        while True:
            try:
                await self._register()
                self.registered.set()
                await self._renew_for(self._settings.status_every)
            except KubeError as error:
                log.warning("the node could not be renewed, will try again", node=self._settings.name, error=str(error))
                await asyncio.sleep(RETRY_AFTER)

    async def _renew_for(self, seconds: float) -> None:
        """Then the whole status is said again."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end and not self._look.is_set():
            await self._renew()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.renew_every):
                    await self._look.wait()

    async def _register(self) -> None:
        self._look.clear()
        node = await self._client.find(NODES, self._key)
        if node is None or (self._uid and node.uid != self._uid):
            await self._fenced()
        node = node or await self._make()
        self._uid = node.uid
        if changes := label_changes(self._settings, self._host, node.labels):
            node = await self._client.patch(NODES, self._key, {"metadata": {"labels": changes}})
        patch: Document = {"status": node_status(self._settings, self._host, node, self._world.now())}
        await self._client.patch(NODES, self._key, patch, subresource="status", content_type=STRATEGIC_PATCH)

    async def _make(self) -> Node:
        try:
            return await self._client.create(NODES, node_document(self._settings, self._host))
        except AlreadyExists:
            return await self._client.get(NODES, self._key)

    async def _renew(self) -> None:
        spec = {
            "holderIdentity": self._settings.name,
            "leaseDurationSeconds": self._settings.lease_seconds,
            "renewTime": micro_timestamp(self._world.now()),
        }
        try:
            await self._client.patch(LEASES, self._lease, {"spec": spec})
        except NotFound:
            metadata = {"name": self._lease.name, "namespace": self._lease.namespace}
            with contextlib.suppress(AlreadyExists):
                await self._client.create(LEASES, {"metadata": metadata, "spec": spec})
