"""A pool as a person makes, changes and looks at it: through the API alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from herder.api import labels, registry
from tests.behaviour.our_kinds import resource_of
from tests.engines.api import Reply
from tests.engines.resources import CONTROLLER_REVISIONS
from tests.machines.herd import DATA_VOLUMES, INSTANCES, MACHINES, Herd, Json, condition, machine
from tests.machines.volumes import BLANK

POOLS = resource_of(registry.POOL)
DISKS: Json = {"disk": BLANK}
# What a bad template does: the guest never boots.
BROKEN = {"fails-at": "boot"}
FIRST = {labels.SCALE_IN: "first"}
NEVER = {labels.SCALE_IN: "never"}
PING: Json = {"guestAgentPing": {}, "periodSeconds": 1}


def template(strategy: str = "Always", *, metadata: Json | None = None, disk: Json | None = None, **written: Any) -> Json:
    """Of a pool: with the labels and annotations of its machines, and perhaps a disk that they mount."""
    whole = machine(strategy, volumes={"disk": disk} if disk is not None else None, **written)
    if disk is not None:
        spec = whole["spec"]["template"]["spec"]
        spec["domain"] = {**spec["domain"], "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}}
        spec["volumes"] = [*spec.get("volumes", ()), {"name": "root", "dataVolume": {"name": "disk"}}]
    return {"metadata": metadata or {}, "spec": whole["spec"]}


def memory(size: str, **simulated: str | None) -> Json:
    """A change of the template that takes a restart; and how guests behave from then on."""
    behaves = {labels.SIMULATED + key.replace("_", "-"): value for key, value in simulated.items()}
    inner: Json = {"spec": {"domain": {"memory": {"guest": size}}}}
    return {"spec": {"template": {**inner, **({"metadata": {"annotations": behaves}} if behaves else {})}}}


def uid(thing: Json) -> str:
    return thing["metadata"]["uid"]


def size_of(thing: Json) -> str:
    """How much memory a machine's guest has, or an instance."""
    spec = thing["spec"].get("template", thing)["spec"]
    return spec["domain"]["memory"]["guest"]


class Pool:
    def __init__(self, herd: Herd, name: str = "web") -> None:
        self.herd = herd
        self.api = herd.api
        self.name = name
        self.namespace = herd.namespace

    # What a person writes.

    async def make(self, replicas: int, made_of: Json | None = None, **spec: Any) -> Json:
        body = {"metadata": {"name": self.name}, "spec": {"replicas": replicas, **spec, "template": made_of or template()}}
        return (await self.api.create(POOLS, body, self.namespace)).ok

    async def change(self, **spec: Any) -> Json:
        return await self.herd.patch(self.name, {"spec": spec}, POOLS)

    async def roll(self, changes: Json, **spec: Any) -> Json:
        return await self.change(template=changes, **spec)

    async def scale(self, replicas: int, **metadata: Any) -> Reply:
        """As `kubectl scale` does it."""
        body = {"metadata": {"name": self.name, "namespace": self.namespace, **metadata}, "spec": {"replicas": replicas}}
        path = POOLS.path(self.namespace, self.name, "scale")
        return await self.api.request("PUT", path, {"apiVersion": "autoscaling/v1", "kind": "Scale", **body})

    async def delete(self, policy: str = "Background") -> None:
        await self.herd.delete(self.name, POOLS, {"propagationPolicy": policy})

    async def annotate(self, number: int, annotations: Json) -> None:
        await self.herd.patch(self.vm(number), {"metadata": {"annotations": annotations}})

    async def mark(self, number: int, marks: Json) -> None:
        await self.herd.patch(self.vm(number), {"metadata": {"labels": marks}})

    async def own(self, number: int, *references: Json) -> Json:
        """Exactly these owners of the machine."""
        return await self.herd.patch(self.vm(number), {"metadata": {"ownerReferences": list(references)}})

    async def reference(self, **more: Any) -> Json:
        kind = {"apiVersion": POOLS.api_version, "kind": POOLS.kind, "name": self.name}
        return {**kind, "uid": uid(await self.get()), **more}

    # What a person sees.

    def vm(self, number: int) -> str:
        return f"{self.name}-{number}"

    def volume(self, number: int) -> str:
        return f"disk-{number}"

    async def get(self) -> Json:
        return (await self.api.get(POOLS, self.name, self.namespace)).ok

    async def machines(self) -> dict[str, Json]:
        listed = (await self.api.list(MACHINES, self.namespace)).items
        return {one["metadata"]["name"]: one for one in listed}

    async def instances(self) -> dict[int, Json]:
        """By number."""
        listed = (await self.api.list(INSTANCES, self.namespace)).items
        return {int(one["metadata"]["name"].rpartition("-")[2]): one for one in listed}

    async def uids(self) -> dict[int, str]:
        """Of the instances, by number."""
        return {number: uid(one) for number, one in (await self.instances()).items()}

    async def numbers(self) -> list[int]:
        """Of the machines that the pool controls and nobody deletes."""
        mine = uid(await self.get())
        found = [one for one in (await self.machines()).values() if "deletionTimestamp" not in one["metadata"]]
        ours = [
            one
            for one in found
            if any(owner["uid"] == mine and owner.get("controller") for owner in one["metadata"].get("ownerReferences", ()))
        ]
        return sorted(int(one["metadata"]["name"].rpartition("-")[2]) for one in ours)

    async def has(self, *numbers: int) -> None:
        async def look() -> bool:
            assert await self.numbers() == list(numbers)
            return True

        await self.herd.eventually(look)

    async def until(self, look: Callable[[Json], Any]) -> Json:
        """The pool, once its controller has seen what was written and `look` at its status holds."""

        async def seen() -> Json:
            found = await self.get()
            status = found.get("status", {})
            assert status.get("observedGeneration") == found["metadata"]["generation"], status
            assert look(status), status
            return found

        return await self.herd.eventually(seen)

    async def shows(self, **status: Any) -> Json:
        """The pool, once its status has these values."""
        return await self.until(lambda shown: all(shown.get(field) == value for field, value in status.items()))

    async def settled(self, replicas: int, **status: Any) -> Json:
        """The pool, once all of its machines are ready and have the template's revision."""
        counts = {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas}

        def look(shown: Json) -> bool:
            values = {**counts, **status}
            return shown.get("currentRevision") == shown.get("updateRevision") and all(
                shown.get(field) == value for field, value in values.items()
            )

        return await self.until(look)

    async def says(self, kind: str, **fields: Any) -> Json:
        """The pool's condition of this type, once it has these values."""

        async def look() -> Json:
            found = await self.get()
            shown = condition({"status": {}, **found}, kind)
            assert shown, found.get("status")
            assert {field: shown.get(field) for field in fields} == fields, shown
            return shown

        return await self.herd.eventually(look)

    async def says_not(self, kind: str) -> None:
        await self.until(lambda status: all(one["type"] != kind for one in status.get("conditions", ())))

    @asynccontextmanager
    async def watched(self, but: int = 0) -> AsyncGenerator[list[int]]:
        """How many of its machines are ready, again and again, as somebody sees it who looks from outside. `but`: one that does not
        count."""
        seen: list[int] = []

        async def look() -> None:
            while True:
                found = [one for number, one in (await self.instances()).items() if number != but]
                ready = [one for one in found if condition({"status": {}, **one}, "Ready").get("status") == "True"]
                seen.append(sum("deletionTimestamp" not in one["metadata"] for one in ready))

        looking = asyncio.create_task(look())
        try:
            yield seen
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def revisions(self) -> list[str]:
        """Names, the oldest first."""
        listed = (await self.api.list(CONTROLLER_REVISIONS, self.namespace)).items
        return [one["metadata"]["name"] for one in sorted(listed, key=lambda one: one["revision"])]

    async def disks(self) -> dict[int, Json]:
        """DataVolumes, by number."""
        listed = (await self.api.list(DATA_VOLUMES, self.namespace)).items
        return {int(one["metadata"]["name"].rpartition("-")[2]): one for one in listed}
