"""A scale-out with real guests: from memory that was kept (Online), to disks that were kept (Offline), to disks that are imported
afresh, and with machines on standby."""

import asyncio
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import msgspec

from bench import pools
from bench.load import MERGE_PATCH, Call, Client, connect
from bench.objects import NAMESPACE, namespace
from bench.pool_objects import POOLS
from bench.program import Up, herder_up
from bench.qemu_machines import kernel
from bench.report import Row
from bench.sides import Options
from herder.nodes.runtimes.choice import PROGRAM
from tests.engines.images import images_of

WAYS = {
    "Online": "memory that was kept",
    "Offline": "disks that were kept",
    "Disabled": "disks imported afresh",
    "StandbyOnline": "suspended on standby",
    "StandbyOffline": "stopped on standby",
}
DATA_VOLUMES = f"/apis/cdi.kubevirt.io/v1beta1/namespaces/{NAMESPACE}/datavolumes"


def rows(folder: Path, options: Options) -> list[Row]:
    """None where there is no QEMU."""
    if shutil.which(PROGRAM) is None:
        return []
    images = folder / "images"
    images.mkdir()
    (images / "disk.img").write_bytes(b"an image".ljust(options.pick(64, 16) << 20, b"."))
    with images_of(images) as url, herder_up(folder / "real", 1, "qemu", "--allow-local-imports") as up:
        return asyncio.run(_measure(up, f"{url}/disk.img", options))


async def _measure(up: Up, url: str, options: Options) -> list[Row]:
    """The two take turns; who comes first changes from round to round."""
    count, size = options.pick(10, 2), options.pick(64, 16)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    async with connect(up.side) as client:
        await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        await client.send(Call("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", kernel()))
        for number in range(options.pick(3, 2)):
            for way in list(seconds)[:: 1 if number % 2 else -1]:
                seconds[way].append(await _scale_out(client, way, count, url, f"{size}Mi"))
    what = f"{count} guests with {size} MiB of disk each, from the scale-out to the last Running"
    return [Row(f"{what}: {WAYS[way]}", "s", statistics.median(taken)) for way, taken in seconds.items()]


async def _scale_out(client: Client, way: str, count: int, url: str, size: str) -> float:
    """Of a pool that had as many before, or has them on standby."""
    sleeping = way.removeprefix("Standby")
    if sleeping != way:
        await client.send(Call("POST", POOLS, _pool("Disabled", 0, url, size, {"replicas": count, "state": sleeping})))
        await _until_asleep(client, count)
    else:
        await client.send(Call("POST", POOLS, _pool(way, count, url, size)))
        await pools.until_running(client, count)
        await _scale(client, 0)
        await pools.until_none(client)
    if way == "Disabled":
        await _until_no_volumes(client)
    began = time.perf_counter()
    await _scale(client, count)
    await pools.until_running(client, count)
    took = time.perf_counter() - began
    await client.send(Call("DELETE", f"{POOLS}/back"))
    await pools.until_none(client)
    await _until_no_volumes(client)
    return took


async def _until_asleep(client: Client, count: int) -> None:
    async def asleep() -> bool:
        status = msgspec.json.decode(await client.send(Call("GET", f"{POOLS}/back"))).get("status", {})
        return status.get("readyStandbyReplicas") == count

    await pools.until(asleep)


async def _scale(client: Client, replicas: int) -> None:
    await client.send(Call("PATCH", f"{POOLS}/back", msgspec.json.encode({"spec": {"replicas": replicas}}), MERGE_PATCH))


async def _until_no_volumes(client: Client) -> None:
    async def none() -> bool:
        return not msgspec.json.decode(await client.send(Call("GET", f"{DATA_VOLUMES}?limit=1")))["items"]

    await pools.until(none)


def _pool(preservation: str, count: int, url: str, size: str, standby: dict[str, Any] | None = None) -> bytes:
    source = {"source": {"http": {"url": url}}, "storage": {"resources": {"requests": {"storage": size}}}}
    machine = {
        "runStrategy": "Always",
        "dataVolumeTemplates": [{"metadata": {"name": "root"}, "spec": source}],
        "template": {"spec": _instance()},
    }
    spec = {
        "replicas": count,
        "scaleInStrategy": {"proactive": {"statePreservation": preservation}},
        "template": {"spec": machine},
        **({"standby": standby} if standby is not None else {}),
    }
    document = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachinePool", "metadata": {"name": "back"}, "spec": spec}
    return msgspec.json.encode(document)


def _instance() -> dict[str, Any]:
    boot = {"volume": {"name": "kernel", "kernelPath": "guest.elf"}, "kernelArgs": "rate=1"}
    domain = {
        "memory": {"guest": "32Mi"},
        "cpu": {"model": "qemu64"},
        "firmware": {"kernelBoot": boot},
        "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]},
        "resources": {"requests": {"cpu": "10m"}},
    }
    volumes = [{"name": "kernel", "configMap": {"name": "kernel"}}, {"name": "root", "dataVolume": {"name": "root"}}]
    return {"domain": domain, "volumes": volumes, "terminationGracePeriodSeconds": 0}
