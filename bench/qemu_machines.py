"""50 tiny guests as VirtualMachines, from the first apply until all of them count, beside bare QEMU processes.

Between the two are an API server, controllers, a scheduler and an agent, each in a process of its own on the same cores.
"""

import asyncio
import base64
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from bench.load import Call, Client, connect, each
from bench.objects import NAMESPACE, namespace
from bench.program import Up, herder_up
from bench.qemu_starts import GUESTS, LEAST_SHARE, MOST_IDLE, RUN_AS, all_count, bare
from bench.report import MORE, Report, Row, promised
from bench.sides import Options, temporary
from herder.nodes.runtimes.choice import PROGRAM
from herder.nodes.runtimes.qemu import ask
from tools.guest.build import build

NAME = "qemu-machines"
MACHINES = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ROUNDS = 7
# Files were removed: for five seconds ext4 gives their numbers to nobody, and whoever makes new ones meanwhile searches for long.
FORGOTTEN = 6.0
PROCESSES = ("engine", "controllers", "agents")


def run(options: Options) -> Report:
    if shutil.which(PROGRAM) is None:
        return Report(NAME, "QEMU is not installed: tools/qemu/install.sh installs it", [])
    guests, rounds, seconds = (10, 1, 2.0) if options.quick else (GUESTS, ROUNDS, 10.0)
    with temporary(options) as folder, herder_up(folder / "up", 1, "qemu") as up:
        ours, alone, cpu, idle = asyncio.run(_measure(up, folder, guests, rounds, seconds))
    rate = Row("guests started, until all count", "/s", statistics.median(ours), statistics.median(alone), MORE)
    # Of one round: what else happens on the machine changes from one to the next.
    shares = sorted(mine / plain for mine, plain in zip(ours, alone, strict=True))
    share = Row(f"share of bare, of {len(shares)} rounds the middle one", "%", 100 * statistics.median(shares))
    rows = [
        rate,
        promised(share, f">= {LEAST_SHARE:.0%}", statistics.median(shares) >= LEAST_SHARE),
        Row("the worst and the best of them", "%", 100 * shares[0], 100 * shares[-1]),
        *(Row(f"CPU of {name} for each guest", "ms", 1000 * cpu[name]) for name in PROCESSES),
        promised(Row(f"idle agent with {guests} guests", "% of a core", idle["agents"]), "<= 2 %", idle["agents"] <= MOST_IDLE),
        *(Row(f"idle {name} with {guests} guests", "% of a core", idle[name]) for name in PROCESSES[:2]),
    ]
    return Report(NAME, f"{guests} tiny guests as VirtualMachines", rows, sides=("herder", "bare QEMU"))


async def _measure(
    up: Up, folder: Path, guests: int, rounds: int, seconds: float
) -> tuple[list[float], list[float], dict[str, float], dict[str, float]]:
    facts = await ask(PROGRAM, RUN_AS)
    ours: list[float] = []
    alone: list[float] = []
    cpu: dict[str, float] = {}
    idle: dict[str, float] = {}
    async with connect(up.side) as client:
        await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        await client.send(Call("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", _kernel()))
        for number in range(rounds + 1):
            before, began = up.cpu(), time.perf_counter()
            await each(lambda name: client.send(Call("POST", MACHINES, _machine(name))), [f"m{number}-{n}" for n in range(guests)])
            await _until_all_count(folder / "up" / "data", guests)
            took, after = time.perf_counter() - began, up.cpu()
            idle = await _idle(up, seconds if number == rounds else 0.1)
            await _remove(client)
            await asyncio.sleep(FORGOTTEN)
            with tempfile.TemporaryDirectory(dir=folder) as place:
                plain = await bare(Path(place), facts, guests)
            await asyncio.sleep(FORGOTTEN)
            if number:  # the first one warms up
                ours.append(guests / took)
                alone.append(plain)
                cpu = {name: (after[name] - before[name]) / guests for name in PROCESSES}
    return ours, alone, cpu, idle


async def _until_all_count(data: Path, guests: int) -> None:
    logs: list[Path] = []
    while len(logs) < guests:
        await asyncio.sleep(0.1)  # a look costs as much as a guest's write: the last ones take longer than that anyway
        logs = list(data.glob("nodes/*/guests/*/console.log"))
    await all_count(logs)


async def _idle(up: Up, seconds: float) -> dict[str, float]:
    before = up.cpu()
    await asyncio.sleep(seconds)
    after = up.cpu()
    return {name: 100 * (after[name] - before[name]) / seconds for name in PROCESSES}


async def _remove(client: Client) -> None:
    await client.send(Call("DELETE", MACHINES))
    left = True
    while left:
        await asyncio.sleep(0.1)
        left = bool(msgspec.json.decode(await client.send(Call("GET", PODS)))["items"])


def _kernel() -> bytes:
    content = base64.b64encode(build().read_bytes()).decode()
    return msgspec.json.encode({"metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}})


def _machine(name: str) -> bytes:
    boot = {"volume": {"name": "kernel", "kernelPath": "guest.elf"}, "kernelArgs": "rate=10"}
    # So that the node has room for all of them.
    asked = {"requests": {"cpu": "10m"}}
    domain = {"memory": {"guest": "32Mi"}, "firmware": {"kernelBoot": boot}, "cpu": {"model": "qemu64"}, "resources": asked}
    spec = {"domain": domain, "volumes": [{"name": "kernel", "configMap": {"name": "kernel"}}], "terminationGracePeriodSeconds": 5}
    document = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Always", "template": {"spec": spec}},
    }
    return msgspec.json.encode(document)
