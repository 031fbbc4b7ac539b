"""Guests: 50 tiny ones through the runtime, beside bare QEMU processes with the same command line, until all of them have spoken.

Then what the agent costs while they run and nothing happens, and what our QMP client costs beside `qemu.qmp`.
"""

import asyncio
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from qemu.qmp import QMPClient

from bench.report import LESS, MORE, Report, Row, promised
from bench.sides import Options
from herder.api.guest import GuestDefinition
from herder.api.world import RealWorld
from herder.nodes.local import unprivileged
from herder.nodes.runtimes.base import FileVolume, Order
from herder.nodes.runtimes.choice import PROGRAM
from herder.nodes.runtimes.qemu import QemuRuntime, ask, process, qmp
from herder.nodes.runtimes.qemu.blueprint import draw
from herder.nodes.runtimes.qemu.command import ConsoleFiles, Fittings, command_line
from herder.nodes.runtimes.qemu.facts import Facts
from tools.guest.build import build

NAME = "qemu-starts"
GUESTS = 50
# As many as an agent works on at once.
AT_ONCE = 8
LEAST_SHARE = 0.8
MOST_IDLE = 2.0
RUN_AS = unprivileged()
# One that counts to ten each second costs as much in ten seconds as it took to start: those that come first would slow down the
# others. So they count slowly, and what is waited for is the last word before they begin.
ARGUMENTS = "rate=1"
_BEGINS = b"settings rate=1 "


def run(options: Options) -> Report:
    if shutil.which(PROGRAM) is None:
        return Report(NAME, "QEMU is not installed: tools/qemu/install.sh installs it", [])
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> Report:
    guests, rounds, seconds = (10, 1, 2.0) if options.quick else (GUESTS, 3, 10.0)
    facts = await ask(PROGRAM, RUN_AS)
    ours: list[float] = []
    alone: list[float] = []
    idle: list[float] = []
    for number in range(rounds + 1):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            through, idles = await _through_the_runtime(Path(folder) / "ours", facts, guests, seconds if number else 0.0)
            (Path(folder) / "bare").mkdir()
            plain = await bare(Path(folder) / "bare", facts, guests)
        if number:  # the first one warms up
            ours.append(through)
            alone.append(plain)
            idle.append(idles)
    share = statistics.median(ours) / statistics.median(alone)
    rate = Row("guests started, until all have spoken", "/s", statistics.median(ours), statistics.median(alone), MORE)
    rows = [
        promised(rate, f">= {LEAST_SHARE:.0%} of bare", share >= LEAST_SHARE),
        promised(
            Row(f"idle agent with {guests} guests", "% of a core", statistics.median(idle)),
            "<= 2 %",
            statistics.median(idle) <= MOST_IDLE,
        ),
        Row("QMP: connect, ask, leave (CPU; beside qemu.qmp)", "ms", *await _clients(facts), LESS),
    ]
    return Report(NAME, f"{guests} tiny guests, {facts.accelerator}", rows, sides=("runtime", "bare QEMU"))


def _order() -> Order:
    boot = {"volume": {"name": "kernel"}, "kernelArgs": ARGUMENTS}
    domain = {"memory": {"guest": "32Mi"}, "firmware": {"kernelBoot": boot}, "cpu": {"model": "qemu64"}}
    document = {"instance": {"namespace": "bench", "name": "guest", "uid": "0"}, "spec": {"domain": domain}}
    return Order(str(uuid.uuid4()), msgspec.convert(document, GuestDefinition), {"kernel": FileVolume(build())})


async def _through_the_runtime(folder: Path, facts: Facts, guests: int, seconds: float) -> tuple[float, float]:
    runtime = QemuRuntime(folder, RealWorld(), facts, RUN_AS)
    await runtime.open(lambda guest: None)
    workers = asyncio.Semaphore(AT_ONCE)

    async def start() -> Path:
        order = _order()
        async with workers:
            await runtime.start(order)
        return folder / "guests" / order.guest / "console.log"

    try:
        began = time.perf_counter()
        await all_speak(list(await asyncio.gather(*(start() for _ in range(guests)))))
        rate = guests / (time.perf_counter() - began)
        before = time.process_time()
        await asyncio.sleep(seconds)
        return rate, 100 * (time.process_time() - before) / seconds if seconds else 0.0
    finally:
        await asyncio.gather(*(runtime.remove(guest) for guest in runtime.guests()))
        await runtime.close()


async def bare(folder: Path, facts: Facts, guests: int) -> float:
    """Nothing but processes: no records, nobody who listens to them."""
    children: list[subprocess.Popen[bytes]] = []
    order = _order()
    blueprint = draw(order, facts)
    kernel = folder / "kernel"
    kernel.write_bytes(build().read_bytes())
    kernel.chmod(0o444)
    try:
        began = time.perf_counter()
        logs = [folder / f"console-{number}" for number in range(guests)]
        for log in logs:
            children.append(_start(log, kernel, lambda fittings: command_line(blueprint, fittings, facts)))
        await all_speak(logs)
        return guests / (time.perf_counter() - began)
    finally:
        for child in children:
            child.kill()
            child.wait()


def _start(log: Path, kernel: Path, command: Callable[[Fittings], list[str]]) -> subprocess.Popen[bytes]:
    control = socket.socket(socket.AF_UNIX)
    control.bind(f"{log}.qmp")
    control.listen(1)
    opened = [os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), os.open(kernel, os.O_RDONLY), os.open(os.devnull, os.O_RDWR)]
    fittings = Fittings(qmp=control.fileno(), console=ConsoleFiles(opened[0]), kernel=opened[1])
    try:
        return process.start(command(fittings), log.parent, opened[2], fittings.descriptors(), RUN_AS)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        control.close()


async def all_speak(logs: list[Path]) -> None:
    """One after the other: who looks at all of them again and again takes a tenth of a core."""
    left = logs[::-1]
    while left:
        if _BEGINS in left[-1].read_bytes():
            left.pop()
        else:
            await asyncio.sleep(0.01)


async def _clients(facts: Facts, times: int = 50) -> tuple[float, float]:
    """CPU of a connection that asks one thing, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "qmp"
        listener = qmp.listen(path)
        null = os.open(os.devnull, os.O_RDWR)
        options = [
            "-nodefaults",
            "-display",
            "none",
            "-machine",
            "none",
            "-chardev",
            f"socket,id=q,fd={listener.fileno()},server=on,wait=off",
        ]
        child = process.start(
            [facts.program, *options, "-mon", "chardev=q,mode=control"], Path("/"), null, (listener.fileno(),), None
        )
        os.close(null)
        listener.close()

        async def ours() -> None:
            client = qmp.QMP(qmp.connect(path), lambda name, data: None, lambda: None)
            await client.greet()
            await client.do("query-status")
            client.close()

        async def theirs() -> None:
            client = QMPClient()
            await client.connect(str(path))
            await client.execute("query-status")
            await client.disconnect()

        try:
            return await _cpu(ours, times), await _cpu(theirs, times)
        finally:
            child.kill()
            child.wait()


async def _cpu(work: Callable[[], Awaitable[None]], times: int) -> float:
    await work()
    before = time.process_time()
    for _ in range(times):
        await work()
    return 1000 * (time.process_time() - before) / times
