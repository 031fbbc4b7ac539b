"""Machines as a person makes, changes and looks at them: through the API alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from herder.api import labels, registry
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Api
from tests.engines.resources import EVENTS, NODES, PODS, Resource
from tests.engines.waiting import eventually

Json = dict[str, Any]
MACHINES = resource_of(registry.MACHINE)
INSTANCES = resource_of(registry.INSTANCE)
DATA_VOLUMES = resource_of(registry.DATA_VOLUME)
# Two busy cores, and a real cluster that takes its time.
PATIENCE = 60.0
QUICK = {"boot": "50ms", "shutdown": "50ms"}
TAINT = {"key": labels.VM_HOST_TAINT, "effect": "NoSchedule"}
# Nodes of a test's own go with the test: machines of others, which would go with them, stay on the nodes that all share.
OWN = {"key": "tests.example.com/own", "effect": "PreferNoSchedule"}


class Herd:
    def __init__(self, api: Api, namespace: str, unique: Callable[..., str]) -> None:
        self.api = api
        self.namespace = namespace
        self._unique = unique
        # Of the test's own.
        self.nodes: list[str] = []

    # What a person writes.

    async def make(self, strategy: str = "Always", *, name: str = "vm", **written: Any) -> Json:
        return (await self.api.create(MACHINES, machine(strategy, name=name, **written), self.namespace)).ok

    async def patch(
        self, name: str, patch: Json, resource: Resource = MACHINES, kind: str = "merge", subresource: str = ""
    ) -> Json:
        return (await self.api.patch(resource, name, patch, self.namespace, subresource, kind=kind)).ok

    async def annotate(self, name: str, annotation: str, value: str, resource: Resource = MACHINES) -> Json:
        return await self.patch(name, {"metadata": {"annotations": {annotation: value}}}, resource)

    async def delete(self, name: str, resource: Resource = MACHINES, options: Json | None = None) -> None:
        (await self.api.delete(resource, name, self.namespace, options)).ok  # noqa: B018

    async def node(self, label: str, **status: Any) -> str:
        """A node of the test's own: only machines that ask for the label go there."""
        name = self._unique("node")
        self.nodes.append(name)
        metadata = {"name": name, "labels": {labels.RUNTIME: "simulated", label: "yes"}}
        made = (await self.api.create(NODES, {"metadata": metadata, "spec": {"taints": [TAINT, OWN]}, "status": status})).ok
        await self.eventually(lambda: self._is_ready(made["metadata"]["name"]))
        return name

    async def _is_ready(self, name: str) -> bool:
        node = (await self.api.get(NODES, name)).ok
        ready = [one["status"] for one in node.get("status", {}).get("conditions", ()) if one["type"] == "Ready"]
        # Whoever made it gave it these; any other one says that it is not ready yet.
        others = {one["key"] for one in node["spec"].get("taints", ())} - {TAINT["key"], OWN["key"]}
        return ready == ["True"] and labels.SCHEDULABLE in node["metadata"]["labels"] and not others

    # What a person sees.

    async def eventually(self, look: Callable[[], Awaitable[Any]]) -> Any:
        return await eventually(look, PATIENCE)

    async def find(self, resource: Resource, name: str) -> Json | None:
        reply = await self.api.get(resource, name, self.namespace)
        return None if reply.code == 404 else reply.ok

    async def machine(self, name: str = "vm") -> Json:
        return (await self.api.get(MACHINES, name, self.namespace)).ok

    async def pods(self) -> list[Json]:
        return (await self.api.list(PODS, self.namespace)).items

    async def instance(self, name: str = "vm") -> Json | None:
        return await self.find(INSTANCES, name)

    async def shows(self, word: str, name: str = "vm", **status: Any) -> Json:
        """The machine, once its printableStatus is this word and its status has these values."""

        async def look() -> Json:
            found = await self.machine(name)
            shown = found.get("status", {})
            seen = {field: shown.get(field) for field in status}
            assert (shown.get("printableStatus"), seen) == (word, status), shown
            return found

        return await self.eventually(look)

    async def phase(self, phase: str, name: str = "vm", *, but: str = "") -> Json:
        """The instance, once it has this phase; `but` is the uid of one that does not count any more."""

        async def look() -> Json:
            found = await self.instance(name)
            assert found is not None
            assert found["metadata"]["uid"] != but
            assert found.get("status", {}).get("phase") == phase, found.get("status")
            return found

        return await self.eventually(look)

    async def running(self, name: str = "vm", *, but: str = "") -> Json:
        found = await self.phase("Running", name, but=but)
        await self.shows("Running", name, ready=True)
        return found

    async def gone(self, resource: Resource, name: str) -> None:
        async def look() -> bool:
            assert await self.find(resource, name) is None
            return True

        await self.eventually(look)

    async def no_pods(self) -> None:
        async def look() -> bool:
            assert await self.pods() == []
            return True

        await self.eventually(look)

    async def events(self, kind: str, name: str = "vm") -> list[tuple[str, str]]:
        """Reason and message of what was told about an object."""
        listed = (await self.api.list(EVENTS, self.namespace)).items
        about = [one for one in listed if (one["involvedObject"]["kind"], one["involvedObject"]["name"]) == (kind, name)]
        return [(one["reason"], one["message"]) for one in about]

    async def told(self, kind: str, reason: str, name: str = "vm") -> str:
        async def look() -> str:
            found = [message for why, message in await self.events(kind, name) if why == reason]
            assert found, await self.events(kind, name)
            return found[-1]

        return await self.eventually(look)


def machine(
    strategy: str = "Always",
    *,
    name: str = "vm",
    simulated: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    marked: dict[str, str] | None = None,
    domain: Json | None = None,
    volumes: Json | None = None,
    **spec: Any,
) -> Json:
    """`spec` is that of the instance, `marked` are its labels; `volumes` are DataVolume templates by name."""
    behaves = {labels.SIMULATED + key: value for key, value in {**QUICK, **(simulated or {})}.items()}
    template = {
        "metadata": {"annotations": behaves, "labels": marked or {}},
        "spec": {"domain": domain or {"memory": {"guest": "64Mi"}}, **spec},
    }
    whole: Json = {"runStrategy": strategy, "template": template}
    if volumes:
        whole["dataVolumeTemplates"] = [{"metadata": {"name": one}, "spec": content} for one, content in volumes.items()]
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": whole}


def condition(thing: Json, kind: str) -> Json:
    return next((one for one in thing["status"].get("conditions", ()) if one["type"] == kind), {})
