"""A node's agent: registers its Node, and keeps saying that it is there.

What runs on a node comes with virtual machines; a Node that nobody renews is one that others stop trusting.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import structlog

from herder.api.world import World, micro_timestamp, timestamp
from herder.kube.client import Client
from herder.kube.errors import AlreadyExists, KubeError
from herder.kube.resources import LEASES, NODES, Anything, Key

LEASE_NAMESPACE = "kube-node-lease"
RENEW_EVERY = 10.0
LEASE_SECONDS = 40
RETRY_AFTER = 1.0
Document = dict[str, Any]

log = structlog.get_logger()

CONDITIONS = (
    ("MemoryPressure", "False", "AgentHasSufficientMemory", "the agent has sufficient memory available"),
    ("DiskPressure", "False", "AgentHasNoDiskPressure", "the agent has no disk pressure"),
    ("PIDPressure", "False", "AgentHasSufficientPID", "the agent has sufficient process ids available"),
    ("Ready", "True", "AgentReady", "the agent is posting ready status"),
)


class NodeAgent:
    def __init__(self, client: Client, world: World, name: str, runtime: str, capacity: dict[str, str]) -> None:
        self._client = client
        self._world = world
        self._name = name
        self._runtime = runtime
        self._capacity = capacity
        self.registered = asyncio.Event()

    async def run(self) -> None:
        """For as long as it is let: an API server that is away is waited for."""
        while True:
            try:
                await self._register()
                self.registered.set()
                while True:
                    await asyncio.sleep(RENEW_EVERY)
                    await self._renew()
            except KubeError as error:
                log.warning("the node could not be renewed, will try again", node=self._name, error=str(error))
                await asyncio.sleep(RETRY_AFTER)

    async def _register(self) -> None:
        await self._make(NODES, self._node())
        await self._client.patch(NODES, Key("", self._name), {"status": self._status()}, subresource="status")
        await self._make(LEASES, self._lease())
        await self._renew()

    async def _make(self, resource: Anything, document: Document) -> None:
        with contextlib.suppress(AlreadyExists):
            await self._client.create(resource, document)

    async def _renew(self) -> None:
        spec = {
            "holderIdentity": self._name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": micro_timestamp(self._world.now()),
        }
        await self._client.patch(LEASES, Key(LEASE_NAMESPACE, self._name), {"spec": spec})

    def _node(self) -> Document:
        labels = {
            "kubernetes.io/hostname": self._name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "herder.dev/runtime": self._runtime.split(":", 1)[0],
        }
        return {"metadata": {"name": self._name, "labels": labels}, "spec": {}}

    def _status(self) -> Document:
        now = timestamp(self._world.now())
        conditions = [
            {"type": kind, "status": value, "reason": reason, "message": text, "lastHeartbeatTime": now, "lastTransitionTime": now}
            for kind, value, reason, text in CONDITIONS
        ]
        return {
            "capacity": self._capacity,
            "allocatable": self._capacity,
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": self._name}],
            "nodeInfo": {
                **dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage"), ""),
                "containerRuntimeVersion": self._runtime,
                "kubeletVersion": "herder",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }

    def _lease(self) -> Document:
        return {
            "metadata": {"name": self._name, "namespace": LEASE_NAMESPACE},
            "spec": {"holderIdentity": self._name, "leaseDurationSeconds": LEASE_SECONDS},
        }
