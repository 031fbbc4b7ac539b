"""Pools of real guests under one `herder up`: what they say, what is on their disks, and a web server with images for them."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from herder.api import registry
from tests.behaviour.our_kinds import resource_of
from tests.e2e.program import Up
from tests.e2e.qemu.counters import HERE, INSTANCES, MACHINES, Witness, processes_in
from tests.engines.api import Api, Json, connect
from tests.engines.images import images_of
from tests.engines.resources import CLAIMS, CONFIG_MAPS, Resource
from tests.engines.waiting import eventually

PATIENCE = 180.0
POOLS, DATA_VOLUMES = resource_of(registry.POOL), resource_of(registry.DATA_VOLUME)


def counting(settings: str) -> Json:
    """The spec of an instance with the tiny guest in it."""
    boot = {"volume": {"name": "kernel", "kernelPath": "guest.elf"}, "kernelArgs": settings}
    return _instance("32Mi", boot, {"name": "kernel", "configMap": {"name": "kernel"}})


def linux(disk: str, **spec: Any) -> Json:
    """The spec of an instance with the Linux of `answering.sh` in it: a disk of its own, and what cloud-init would read."""
    boot = {"volume": {"name": "linux"}, "kernelArgs": "console=ttyS0 quiet panic=-1 nokaslr"}
    made = _instance("192Mi", boot, {"name": "linux", "dataVolume": {"name": "linux"}})
    return with_disks(made, disk, "seed") | spec


def _instance(memory: str, boot: Json, kernel: Json) -> Json:
    resources = {"requests": {"cpu": "20m"}}
    domain: Json = {
        "memory": {"guest": memory},
        "cpu": {"model": "qemu64"},
        "firmware": {"kernelBoot": boot},
        "resources": resources,
    }
    return {"domain": domain, "volumes": [kernel], "terminationGracePeriodSeconds": 0}


def with_disks(spec: Json, *names: str) -> Json:
    """`seed` is for somebody else to describe, all others are DataVolumes of the template."""
    disks = [{"name": name, "disk": {"bus": "virtio"}} for name in names]
    own = [{"name": name, "dataVolume": {"name": name}} for name in names if name != "seed"]
    return spec | {"domain": spec["domain"] | {"devices": {"disks": disks}}, "volumes": [*spec["volumes"], *own]}


def volume(name: str, size: str, url: str = "") -> Json:
    source = {"http": {"url": url}} if url else {"blank": {}}
    spec = {"source": source, "storage": {"resources": {"requests": {"storage": size}}}}
    return {"metadata": {"name": name}, "spec": spec}


class Herd:
    def __init__(self, up: Up, api: Api, witness: Witness, images: Path, url: str) -> None:
        self.data = up.data
        self.api = api
        self.witness = witness
        self.images = images
        self.url = url

    async def make(self, name: str, replicas: int, instance: Json, *volumes: Json, **spec: Any) -> None:
        machine = {"runStrategy": "Always", "template": {"spec": instance}, "dataVolumeTemplates": list(volumes)}
        body = {"metadata": {"name": name}, "spec": {"replicas": replicas, "template": {"spec": machine}, **spec}}
        (await self.api.create(POOLS, body, HERE)).ok  # noqa: B018
        await self.settled(name, replicas)

    async def change(self, name: str, spec: Json) -> Json:
        """A merge patch of the pool's spec."""
        return (await self.api.patch(POOLS, name, {"spec": spec}, HERE)).ok

    async def roll(self, name: str, replicas: int, machine: Json) -> None:
        """Another template, until all machines have it."""
        before = (await self.get(POOLS, name))["status"]["updateRevision"]
        await self.change(name, {"template": {"spec": machine}})

        async def noticed() -> bool:
            return (await self.get(POOLS, name))["status"]["updateRevision"] != before

        await eventually(noticed, PATIENCE)
        await self.settled(name, replicas)

    async def settled(self, name: str, replicas: int) -> None:
        async def look() -> bool:
            pool = await self.get(POOLS, name)
            status = pool.get("status", {})
            counts = [status.get(field) for field in ("replicas", "readyReplicas", "updatedReplicas")]
            revisions = {status.get("currentRevision"), status.get("updateRevision")}
            assert counts == [replicas] * 3 and len(revisions) == 1, status
            assert status["observedGeneration"] == pool["metadata"]["generation"], status
            return True

        await eventually(look, PATIENCE)

    async def end(self, name: str) -> None:
        (await self.api.delete(POOLS, name, HERE)).ok  # noqa: B018
        for resource in (MACHINES, INSTANCES):
            await eventually(self._none_of(resource, name), PATIENCE)

    def _none_of(self, resource: Resource, pool: str) -> Callable[[], Awaitable[bool]]:
        async def look() -> bool:
            return not [one for one in await self.all(resource) if one["metadata"]["name"].startswith(f"{pool}-")]

        return look

    async def all(self, resource: Resource) -> list[Json]:
        return (await self.api.list(resource, HERE)).items

    async def get(self, resource: Resource, name: str) -> Json:
        return (await self.api.get(resource, name, HERE)).ok

    async def uid(self, resource: Resource, name: str) -> str:
        return (await self.get(resource, name))["metadata"]["uid"]

    async def disk(self, claim: str) -> Path:
        """The file that QEMU has as this claim's disk."""
        return self.data / "volumes" / (await self.get(CLAIMS, claim))["spec"]["volumeName"] / "disk.img"

    async def says(self, name: str, words: str, times: int = 1) -> str:
        """All that this machine has said in all its lives, once the words are among it so often."""

        async def look() -> str:
            text = self.witness.text(name)
            assert text.count(words) >= times, text
            return text

        return await eventually(look, PATIENCE)

    def type(self, name: str, line: str) -> None:
        """On the console of the only guest of that name."""
        (folder,) = [one for one in self.data.glob("nodes/*/guests/*") if _name_in(one) == name]
        keyboard = os.open(folder / "console.input", os.O_WRONLY | os.O_NONBLOCK)
        os.write(keyboard, line.encode() + b"\n")
        os.close(keyboard)


def _name_in(folder: Path) -> str:
    with suppress(OSError, json.JSONDecodeError):
        return json.loads((folder / "guest.json").read_bytes())["definition"]["instance"]["name"]
    return ""


@asynccontextmanager
async def running_herd(folder: Path, guest: Path) -> AsyncGenerator[Herd]:
    images = folder / "images"
    images.mkdir()
    with images_of(images) as url, Up(folder, "--runtime", "qemu", "--allow-local-imports") as up:
        witness = Witness(up.data)
        try:
            async with connect(up.connection(folder)) as api:
                content = base64.b64encode(guest.read_bytes()).decode()
                kernel = {"metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}}
                (await api.create(CONFIG_MAPS, kernel, HERE)).ok  # noqa: B018
                yield Herd(up, api, witness, images, url)
        finally:
            witness.close()
    assert processes_in(up.data) == [], "no guest outlives the program"
