"""A scale-out with real guests: to disks that were kept (statePreservation Offline), and to disks that are imported afresh."""

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
    seconds: dict[str, list[float]] = {"Offline": [], "Disabled": []}
    async with connect(up.side) as client:
        await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        await client.send(Call("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", kernel()))
        for number in range(options.pick(3, 2)):
            for preservation in list(seconds)[:: 1 if number % 2 else -1]:
                seconds[preservation].append(await _scale_out(client, preservation, count, url, f"{size}Mi"))
    what = f"{count} guests with {size} MiB of disk each, from the scale-out to the last Running"
    kept, fresh = (statistics.median(seconds[preservation]) for preservation in ("Offline", "Disabled"))
    return [Row(f"{what}: disks that were kept", "s", kept), Row(f"{what}: disks imported afresh", "s", fresh)]


async def _scale_out(client: Client, preservation: str, count: int, url: str, size: str) -> float:
    """Of a pool that had as many before."""
    await client.send(Call("POST", POOLS, _pool(preservation, count, url, size)))
    await pools.until_running(client, count)
    await _scale(client, 0)
    await pools.until_none(client)
    if preservation == "Disabled":
        await _until_no_volumes(client)
    began = time.perf_counter()
    await _scale(client, count)
    await pools.until_running(client, count)
    took = time.perf_counter() - began
    await client.send(Call("DELETE", f"{POOLS}/back"))
    await pools.until_none(client)
    await _until_no_volumes(client)
    return took


async def _scale(client: Client, replicas: int) -> None:
    await client.send(Call("PATCH", f"{POOLS}/back", msgspec.json.encode({"spec": {"replicas": replicas}}), MERGE_PATCH))


async def _until_no_volumes(client: Client) -> None:
    async def none() -> bool:
        return not msgspec.json.decode(await client.send(Call("GET", f"{DATA_VOLUMES}?limit=1")))["items"]

    await pools.until(none)


def _pool(preservation: str, count: int, url: str, size: str) -> bytes:
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
