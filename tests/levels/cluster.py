"""A cluster of different processors, as a person makes it and looks at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.api import labels, registry
from herder.api.kinds import VirtualMachineInstance
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Api
from tests.engines.resources import NAMESPACES, NODES
from tests.machines.herd import MACHINES, TAINT, Herd, Json
from tests.unit.rules.migratability.nodes import Labels, cpu

SETTINGS = resource_of(registry.SETTINGS)
KUBEVIRT = "kubevirt"
# Two of one kind, and one that has more: guests that were started there need it.
PLAIN = cpu("Skylake-Client", ["aes", "avx2"], models=["Haswell"])
ODD = cpu("Skylake-Client", ["aes", "avx2", "avx512f"], models=["Haswell"])

__all__ = ["KUBEVIRT", "ODD", "PLAIN", "SETTINGS", "Mixed", "VirtualMachineInstance"]


class Mixed(Herd):
    """All nodes of the cluster are the test's own: levels are about all of them."""

    def __init__(self, api: Api, namespace: str, unique: Callable[..., str]) -> None:
        super().__init__(api, namespace, unique)
        self._made: list[str] = []

    async def processor(self, name: str, written: Labels) -> str:
        metadata = {"name": name, "labels": {labels.RUNTIME: "simulated", **written}}
        (await self.api.create(NODES, {"metadata": metadata, "spec": {"taints": [TAINT]}})).ok  # noqa: B018
        self._made.append(name)
        await self.eventually(lambda: self._is_ready(name))
        return name

    async def two_plain_and_an_odd_one(self) -> None:
        """The odd one is the first by name: all else being equal, guests go there."""
        for name, written in {"a-odd": ODD, "b-plain": PLAIN, "c-plain": PLAIN}.items():
            await self.processor(name, written)
        await self.levels({"a-odd": "0", "b-plain": "66", "c-plain": "66"})

    async def levels(self, wanted: dict[str, str | None]) -> None:
        async def look() -> bool:
            listed = (await self.api.list(NODES)).items
            found = {one["metadata"]["name"]: one["metadata"]["labels"].get(labels.MIGRATABILITY_LEVEL) for one in listed}
            assert found == wanted
            return True

        await self.eventually(look)

    async def set(self, **migrations: Any) -> Json:
        """What the KubeVirt object says of migrations from now on."""
        document: Json = {"metadata": {"name": KUBEVIRT}, "spec": {"configuration": {"migrations": migrations}}}
        known = await self.api.get(SETTINGS, KUBEVIRT, KUBEVIRT)
        if known.code == 404:
            reply = await self.api.create(SETTINGS, document, KUBEVIRT)
        else:
            # In one step: without the object there would be a moment in which nothing is asked for.
            reply = await self.api.update(SETTINGS, {**known.ok, "spec": document["spec"]}, KUBEVIRT)
        return {**reply.ok, "warnings": reply.warnings}

    async def cordon(self, name: str, closed: bool = True) -> None:
        (await self.api.patch(NODES, name, {"spec": {"unschedulable": closed}})).ok  # noqa: B018

    async def take_away(self, name: str) -> None:
        self._made.remove(name)
        (await self.api.delete(NODES, name)).ok  # noqa: B018

    async def begin(self) -> None:
        reply = await self.api.create(NAMESPACES, {"metadata": {"name": KUBEVIRT}})
        assert reply.code in (201, 409), reply.body

    async def clear(self) -> None:
        """The next test finds an empty cluster."""
        for machine in (await self.api.list(MACHINES, self.namespace)).items:
            await self.delete(machine["metadata"]["name"])
        await self.no_pods()
        await self.api.delete(SETTINGS, KUBEVIRT, KUBEVIRT)
        made = list(self._made)
        for name in made:
            await self.take_away(name)
        await self.eventually(lambda: self._are_gone(made))

    async def _are_gone(self, nodes: list[str]) -> bool:
        """Their agent lets them go a moment later."""
        return not set(nodes) & set((await self.api.list(NODES)).names)
