"""Migrations as a person makes and follows them."""

from __future__ import annotations

from typing import Any

from herder.api import registry
from tests.behaviour.our_kinds import resource_of
from tests.engines.resources import NODES
from tests.machines.herd import OWN, TAINT, Herd, Json

MIGRATIONS = resource_of(registry.MIGRATION)
POLICIES = resource_of(registry.POLICY)
SETTINGS = resource_of(registry.SETTINGS)
DRAIN = "kubevirt.io/drain"
# Slow enough to be looked at.
CRAWL = {"bandwidthPerMigration": "1Mi"}


class Movers:
    """A herd with nodes of its own: whatever else goes on in the cluster, its machines run on these."""

    def __init__(self, herd: Herd, label: str, nodes: list[str]) -> None:
        self.herd = herd
        self.label = label
        self.nodes = nodes

    async def make(self, name: str = "vm", **written: Any) -> Json:
        selector = {self.label: "yes", **written.pop("nodeSelector", {})}
        await self.herd.make(name=name, nodeSelector=selector, **written)
        return await self.herd.running(name)

    async def move(self, name: str = "vm", migration: str = "move", **spec: Any) -> Json:
        document = {"metadata": {"name": migration}, "spec": {"vmiName": name, **spec}}
        return (await self.herd.api.create(MIGRATIONS, document, self.herd.namespace)).ok

    async def phase(self, phase: str, migration: str = "move") -> Json:
        async def look() -> Json:
            found = await self.herd.find(MIGRATIONS, migration)
            assert found is not None
            assert found.get("status", {}).get("phase") == phase, found.get("status")
            return found

        return await self.herd.eventually(look)

    async def failed(self, reason: str, migration: str = "move") -> str:
        status = (await self.phase("Failed", migration))["status"]
        assert status["reason"] == reason, status
        return status["message"]

    async def on(self, node: str, name: str = "vm") -> Json:
        async def look() -> Json:
            found = await self.herd.instance(name)
            assert found is not None
            assert (found["status"]["phase"], found["status"]["nodeName"]) == ("Running", node), found["status"]
            return found

        return await self.herd.eventually(look)

    async def one_pod(self) -> Json:
        async def look() -> Json:
            pods = await self.herd.pods()
            assert len(pods) == 1, [pod["metadata"]["name"] for pod in pods]
            return pods[0]

        return await self.herd.eventually(look)

    async def slow(self, name: str) -> None:
        """For machines that carry the label."""
        spec = {**CRAWL, "selectors": {"virtualMachineInstanceSelector": {self.label: "slow"}}}
        (await self.herd.api.create(POLICIES, {"metadata": {"name": name}, "spec": spec})).ok  # noqa: B018

    def others(self, node: str) -> list[str]:
        return [one for one in self.nodes if one != node]

    async def taint(self, node: str, *, drained: bool) -> None:
        wanted = [TAINT, OWN, *([{"key": DRAIN, "effect": "NoSchedule"}] if drained else [])]
        (await self.herd.api.patch(NODES, node, {"spec": {"taints": wanted}}, kind="merge")).ok  # noqa: B018


def named(node: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
