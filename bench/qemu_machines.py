"""50 tiny guests as VirtualMachines, from the first apply until all of them say Running and have spoken, beside bare QEMU.

Between the two are an API server, controllers, a scheduler and an agent, each in a process of its own on the same cores.
"""

import asyncio
import base64
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bench.load import Call, Client, connect, each
from bench.objects import NAMESPACE, namespace
from bench.program import Up, herder_up
from bench.qemu_starts import ARGUMENTS, GUESTS, LEAST_SHARE, MOST_IDLE, RUN_AS, all_speak, bare
from bench.report import MORE, Report, Row, promised
from bench.sides import Options, temporary
from herder.nodes.runtimes.choice import PROGRAM
from herder.nodes.runtimes.qemu import ask
from tools.guest.build import build

NAME = "qemu-machines"
MACHINES = f"/apis/kubevirt.io/v1/namespaces/{NAMESPACE}/virtualmachines"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ROUNDS = 7
# Files were removed: for five seconds ext4 gives their numbers to nobody, and whoever makes new ones meanwhile searches for long.
FORGOTTEN = 6.0
PROCESSES = ("engine", "controllers", "agents")
# By then everything that was to be told has been told.
AFTERWARDS = 3.0


class _Named(msgspec.Struct):
    name: str


class _Shown(msgspec.Struct):
    printable_status: str = msgspec.field(default="", name="printableStatus")


class _Machine(msgspec.Struct):
    metadata: _Named
    status: _Shown = msgspec.field(default_factory=_Shown)


class _Event(msgspec.Struct):
    object: _Machine


_EVENT = msgspec.json.Decoder(_Event)


class Round(msgspec.Struct):
    """Guests a second, seconds of CPU for each by process (until all run, and a while longer), and events that were written by
    then."""

    rate: float
    cpu: dict[str, float]
    later: dict[str, float]
    told: float


def run(options: Options) -> Report:
    if shutil.which(PROGRAM) is None:
        return Report(NAME, "QEMU is not installed: tools/qemu/install.sh installs it", [])
    guests, rounds, seconds = (10, 1, 2.0) if options.quick else (GUESTS, ROUNDS, 10.0)
    with temporary(options) as folder, herder_up(folder / "up", 1, "qemu") as up:
        ours, alone, idle = asyncio.run(_measure(up, folder, guests, rounds, seconds))
    # Each beside the bare ones before and after it: what else happens on the machine changes from one minute to the next.
    shares = sorted(one.rate / statistics.mean(alone[number : number + 2]) for number, one in enumerate(ours))
    rows = [
        Row("guests started, until all run", "/s", statistics.median(one.rate for one in ours), statistics.median(alone), MORE),
        promised(
            Row(f"share of bare, of {len(shares)} rounds the middle one", "%", 100 * statistics.median(shares)),
            f">= {LEAST_SHARE:.0%}",
            statistics.median(shares) >= LEAST_SHARE,
        ),
        Row("the worst and the best of them", "%", 100 * shares[0], 100 * shares[-1]),
        *(Row(f"CPU of {name} for each guest", "ms", 1000 * _middle(one.cpu[name] for one in ours)) for name in PROCESSES),
        Row("CPU of all three in the seconds after that", "ms", 1000 * _middle(sum(one.later.values()) for one in ours)),
        Row("events of each guest that are written by then", "of 4", _middle(one.told for one in ours)),
        promised(Row(f"idle agent with {guests} guests", "% of a core", idle["agents"]), "<= 2 %", idle["agents"] <= MOST_IDLE),
        *(Row(f"idle {name} with {guests} guests", "% of a core", idle[name]) for name in PROCESSES[:2]),
    ]
    return Report(NAME, f"{guests} tiny guests as VirtualMachines", rows, sides=("herder", "bare QEMU"))


def _middle(values: Iterable[float]) -> float:
    return statistics.median(values)


async def _measure(
    up: Up, folder: Path, guests: int, rounds: int, seconds: float
) -> tuple[list[Round], list[float], dict[str, float]]:
    facts = await ask(PROGRAM, RUN_AS)
    ours: list[Round] = []
    alone: list[float] = []
    idle: dict[str, float] = {}
    async with connect(up.side) as client:
        await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        await client.send(Call("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", kernel()))
        for number in range(rounds + 1):
            one = await _round(client, up, folder / "up" / "data", [f"m{number}-{n}" for n in range(guests)])
            if number == rounds:
                idle = await _idle(up, seconds)
            await _remove(client)
            await asyncio.sleep(FORGOTTEN)
            with tempfile.TemporaryDirectory(dir=folder) as place:
                alone.append(await bare(Path(place), facts, guests))
            await asyncio.sleep(FORGOTTEN)
            if number:  # the first one warms up
                ours.append(one)
    return ours, alone, idle


async def _round(client: Client, up: Up, data: Path, names: list[str]) -> Round:
    await client.send(Call("DELETE", EVENTS))
    running = asyncio.create_task(_until_all_run(client, set(names)))
    await asyncio.sleep(0.5)
    before, began = up.cpu(), time.perf_counter()
    await each(lambda name: client.send(Call("POST", MACHINES, _machine(name))), names)
    await running
    await all_speak(list(data.glob("nodes/*/guests/*/console.log")))
    took, after = time.perf_counter() - began, up.cpu()
    told = len(msgspec.json.decode(await client.send(Call("GET", EVENTS)))["items"])
    await asyncio.sleep(AFTERWARDS)
    last = up.cpu()
    return Round(len(names) / took, _each(before, after, len(names)), _each(after, last, len(names)), told / len(names))


def _each(before: dict[str, float], after: dict[str, float], guests: int) -> dict[str, float]:
    return {name: (after[name] - before[name]) / guests for name in PROCESSES}


async def _until_all_run(client: Client, names: set[str]) -> None:
    """As somebody with `kubectl get vm --watch` sees it."""
    answer = await client.stream(f"{MACHINES}?watch=1")
    left, rest = set(names), b""
    async for piece in answer.content.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            event = _EVENT.decode(line)
            if event.object.status.printable_status == "Running":
                left.discard(event.object.metadata.name)
        if not left:
            break
    answer.close()


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


def kernel() -> bytes:
    content = base64.b64encode(build().read_bytes()).decode()
    return msgspec.json.encode({"metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}})


def _machine(name: str) -> bytes:
    boot = {"volume": {"name": "kernel", "kernelPath": "guest.elf"}, "kernelArgs": ARGUMENTS}
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
