"""What it costs to ask the nodes every 15 s what a thousand machines use: with and without, in turns, in one program."""

import asyncio
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.load import Call, Client, connect, each
from bench.machines import MACHINES, NODES, machine, until_running
from bench.objects import namespace
from bench.program import Up, herder_up
from bench.report import LESS, Report, Row
from bench.rounds import Measured
from bench.sides import Options, temporary
from herder.server.resource_metrics.sampler import EVERY
from tests.engines.waiting import eventually

NAME = "sampling"
WITH, WITHOUT = "sampled", "not sampled"
MOST = 5.0
# In the engine the sampler, in the agents the endpoint; controllers have no part in it.
PARTS = ("engine", "agents")
METRICS = "/apis/metrics.k8s.io/v1beta1/pods?limit=1"


def run(options: Options) -> Report:
    count = options.pick(1000, 200)
    with temporary(options) as folder, _switch(folder / "quiet") as quiet, herder_up(folder / "up", NODES) as up:
        asyncio.run(_start(up, count))
        measured = _measure(up, quiet, options)
    shares = {side: sum(measured.median(side, part) or 0.0 for part in PARTS) for side in (WITH, WITHOUT)}
    cost = shares[WITH] - shares[WITHOUT]
    rows = [
        *(_row(measured, part) for part in PARTS),
        Row("both", "%", shares[WITH], shares[WITHOUT], LESS),
        Row("what sampling costs", "%", cost, aim=f"< {MOST:.0f} %", met=cost < MOST),
    ]
    title = f"{count:,} simulated machines on {NODES} nodes, shares of a core, asked every {EVERY:.0f} s and not at all"
    return Report(NAME, title, rows, sides=(WITH, WITHOUT), rounds=measured.rounds)


def _row(measured: Measured, part: str) -> Row:
    return Row(part, "%", measured.median(WITH, part), measured.median(WITHOUT, part), LESS)


@contextmanager
def _switch(quiet: Path) -> Generator[Path]:
    """The file that keeps the sampler from asking, once it is there."""
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "HERDER_BENCH_QUIET")}
    os.environ |= {"PYTHONPATH": str(Path(__file__).with_name("quiet")), "HERDER_BENCH_QUIET": str(quiet)}
    try:
        yield quiet
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


async def _start(up: Up, count: int) -> None:
    async with connect(up.side) as client:
        await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        running = asyncio.create_task(until_running(client, count))
        await each(lambda name: client.send(Call("POST", MACHINES, machine(name))), [f"vm-{one}" for one in range(count)])
        await running
        # Once the engine has asked twice it says what it was told: it asks indeed.
        await eventually(lambda: _measured(client), patience=10 * EVERY)


async def _measured(client: Client) -> bool:
    return b'"containers"' in await client.send(Call("GET", METRICS))


def _measure(up: Up, quiet: Path, options: Options) -> Measured:
    measured = Measured()
    rounds = options.pick(3, 1)
    for number in range(rounds):
        for side in (WITH, WITHOUT) if number % 2 else (WITHOUT, WITH):
            quiet.unlink(missing_ok=True) if side == WITH else quiet.touch()
            # The round that is under way ends, and what was told of it is written.
            time.sleep(EVERY)
            measured.add(side, _shares(up, options.pick(4, 2) * EVERY))
    return measured


def _shares(up: Up, seconds: float) -> dict[str, float]:
    before, began = up.cpu(), time.perf_counter()
    time.sleep(seconds)
    passed = time.perf_counter() - began
    return {part: (up.cpu()[part] - before[part]) / passed * 100 for part in PARTS}
