"""A real guest of 1 GiB is suspended and resumed by a patch, beside the same by bare QMP; and a Linux that is resumed beside one
that boots.

Ours is what a user waits for: from the patch of `spec.suspended` until a watch shows Suspended, or Running.
"""

import asyncio
import base64
import shutil
import statistics
import subprocess
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.bare_suspensions import BareSuspension
from bench.objects import NAMESPACE
from bench.report import LESS, Report, Row, promised
from bench.sides import Options, temporary
from bench.whole_suspensions import WholeSuspension
from herder.api.guest import GuestDefinition
from herder.nodes.local import unprivileged
from herder.nodes.runtimes.base import FileVolume, Order
from herder.nodes.runtimes.choice import PROGRAM
from herder.nodes.runtimes.qemu import ask
from herder.nodes.runtimes.qemu.facts import Facts
from tests.e2e.guest.linux import initramfs
from tests.engines.images import images_of
from tools.guest.build import build, build_linux

NAME = "suspensions"
MEMORY = "1Gi"
# Nearly all of it is in use: pages that nobody ever wrote take no room in the file.
LOAD = "rate=100 dirty=4M/s working-set=900M"
MOST_TIMES, MOST_SECONDS_MORE = 1.1, 0.5
LINUX_MEMORY = "256Mi"
LINUX = Path(__file__).parents[1] / "tools" / "qemu" / "linux.sh"
SCRIPT = """
/bin/busybox --install -s /bin
mount -t proc proc /proc
echo; echo linux is up
while :; do echo alive; sleep 0.05; done
"""
_RUN_AS = unprivileged()
_PATIENCE = 300.0
_VOLUMES = f"/apis/cdi.kubevirt.io/v1beta1/namespaces/{NAMESPACE}/datavolumes"


def run(options: Options) -> Report:
    if shutil.which(PROGRAM) is None:
        return Report(NAME, "QEMU is not installed: tools/qemu/install.sh installs it", [])
    with temporary(options) as folder:
        return asyncio.run(_measure(folder, options.pick(5, 1)))


async def _measure(folder: Path, rounds: int) -> Report:
    facts = await ask(PROGRAM, _RUN_AS)
    ours: list[tuple[float, float]] = []
    alone: list[tuple[float, float]] = []
    whole, bare = WholeSuspension(folder / "whole"), _bare(folder, facts)
    (folder / "images").mkdir()
    try:
        with images_of(folder / "images") as url:
            await whole.start("--allow-local-imports")
            await whole.send("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", _kernel())
            await whole.make(_machine("guest", MEMORY, "configMap", LOAD))
            await bare.start()
            for number in range(rounds + 1):
                one = await _cycle(whole.consoles, lambda: whole.suspend("guest"), lambda: whole.resume("guest"))
                other = await _cycle(bare.consoles, lambda: _timed(bare.save), lambda: _timed(bare.resume))
                bare.clear()
                if number:  # the first one warms up
                    ours.append(one)
                    alone.append(other)
            await bare.end()
            await whole.change("guest", {"runStrategy": "Halted"}, "Stopped")
            linux = await _linux(whole, folder / "images", url, rounds)
    finally:
        await bare.end()
        await whole.end()
    rows = [
        _row("suspended: from the patch until Suspended", [one[0] for one in ours], [one[0] for one in alone]),
        _row("resumed: from the patch until Running", [one[1] for one in ours], [one[1] for one in alone]),
        *linux,
    ]
    notes = ["the file of either side is on the disk before the guest counts as saved, and renamed durably before it runs again"]
    return Report(NAME, f"a guest of {MEMORY} ({LOAD}), {facts.accelerator}", rows, notes, sides=("ours", "bare QMP"))


class _Bare(BareSuspension):
    def consoles(self) -> list[Path]:
        return list(self.root.glob("qemu-*/console.log"))


def _bare(folder: Path, facts: Facts) -> _Bare:
    root = folder / "bare"
    root.mkdir()
    boot = {"volume": {"name": "kernel"}, "kernelArgs": LOAD}
    domain = {"memory": {"guest": MEMORY}, "firmware": {"kernelBoot": boot}, "cpu": {"model": "qemu64"}}
    document = {"instance": {"namespace": "bench", "name": "guest", "uid": "0"}, "spec": {"domain": domain}}
    order = Order(str(uuid.uuid4()), msgspec.convert(document, GuestDefinition), {"kernel": FileVolume(build())})
    return _Bare(root, order, build(), facts, _RUN_AS)


async def _cycle(
    consoles: Callable[[], list[Path]], suspend: Callable[[], Awaitable[float]], resume: Callable[[], Awaitable[float]]
) -> tuple[float, float]:
    """Once it counts: all its memory is in use by then."""
    await _speaks(consoles, b"tick ", since=time.time())
    return await suspend(), await resume()


async def _timed(act: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await act()
    return time.perf_counter() - began


async def _speaks(consoles: Callable[[], list[Path]], word: bytes, since: float) -> None:
    """Until one that was written to since then has the word."""
    async with asyncio.timeout(_PATIENCE):
        while not any(_said(log, word, since) for log in consoles()):  # noqa: ASYNC110 - a file tells nobody that it grew
            await asyncio.sleep(0.005)


def _said(log: Path, word: bytes, since: float) -> bool:
    try:
        return log.stat().st_mtime > since and word in log.read_bytes()
    except FileNotFoundError:
        return False


def _row(name: str, ours: list[float], bare: list[float]) -> Row:
    seconds, theirs = statistics.median(ours), statistics.median(bare)
    aim = f"<= {MOST_TIMES} x + {MOST_SECONDS_MORE} s"
    return promised(Row(name, "s", seconds, theirs, LESS), aim, seconds <= MOST_TIMES * theirs + MOST_SECONDS_MORE)


async def _linux(whole: WholeSuspension, images: Path, url: str, rounds: int) -> list[Row]:
    """Until it says its next word, whatever has to be done for that."""
    fetched = await asyncio.to_thread(subprocess.run, [LINUX], capture_output=True, text=True, check=False)
    if fetched.returncode:
        return []
    files = Path(fetched.stdout.strip())
    (images / "initrd").write_bytes(initramfs(files / "busybox", SCRIPT))
    build_linux(files / "vmlinuz", images / "initrd", images / "linux.elf")
    await whole.send("POST", _VOLUMES, msgspec.json.encode(_volume(f"{url}/linux.elf")))
    await whole.make(_machine("linux", LINUX_MEMORY, "dataVolume", "console=ttyS0 quiet panic=-1"))
    booted: list[float] = []
    resumed: list[float] = []
    for _ in range(rounds):
        await whole.change("linux", {"runStrategy": "Halted"}, "Stopped")
        booted.append(await _until_it_speaks(whole, {"runStrategy": "Always"}, b"linux is up"))
        await whole.suspend("linux")
        resumed.append(await _until_it_speaks(whole, {"suspended": None}, b"alive"))
    what = f"a Linux of {LINUX_MEMORY}, from the patch until it speaks"
    return [
        Row(f"{what}, booted", "s", statistics.median(booted)),
        Row(f"{what}, resumed", "s", statistics.median(resumed)),
    ]


async def _until_it_speaks(whole: WholeSuspension, spec: dict[str, Any], word: bytes) -> float:
    since, began = time.time(), time.perf_counter()
    change = asyncio.create_task(whole.change("linux", spec, "Running"))
    await _speaks(whole.consoles, word, since)
    took = time.perf_counter() - began
    await change
    return took


def _volume(url: str) -> dict[str, Any]:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}
    kind = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume"}
    return {**kind, "metadata": {"name": "linux"}, "spec": {"source": {"http": {"url": url}}, "pvc": claim}}


def _kernel() -> bytes:
    content = base64.b64encode(build().read_bytes()).decode()
    return msgspec.json.encode({"metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}})


def _machine(name: str, memory: str, kind: str, arguments: str) -> dict[str, Any]:
    source = {"configMap": {"name": "kernel"}, "dataVolume": {"name": "linux"}}[kind]
    volume = {"name": "kernel", **({"kernelPath": "guest.elf"} if kind == "configMap" else {})}
    boot = {"volume": volume, "kernelArgs": arguments}
    domain = {"memory": {"guest": memory}, "firmware": {"kernelBoot": boot}, "cpu": {"model": "qemu64"}}
    spec = {"domain": domain, "volumes": [{"name": "kernel", kind: source}], "terminationGracePeriodSeconds": 2}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Always", "template": {"spec": spec}},
    }
