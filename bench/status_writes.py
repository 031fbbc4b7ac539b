"""Writes of the status of pods of 4 KB, in one way or another, by 64 writers."""

import asyncio
import itertools
from collections.abc import Callable

from bench.load import WRITERS, Call, Client, connect_all, fill, repeat
from bench.report import Report, load_rows
from bench.rounds import Measured, take_turns
from bench.sides import Options, Side, both

PODS = 1000
SIZE = 4096
# Of a pod by its name, different each time by the number.
Write = Callable[[str, int], Call]


def measure_writes(name: str, way: str, what: str, write: Write, options: Options) -> Report:
    with both(options) as (sides, notes):
        measured = asyncio.run(_measure(sides, write, options))
    title = f"{way} of the status of {PODS:,} pods, {WRITERS} writers"
    return Report(name, title, load_rows(measured, what), notes + measured.notes(), rounds=measured.rounds)


async def _measure(sides: list[Side], write: Write, options: Options) -> Measured:
    marks = itertools.count()
    async with connect_all(sides) as clients:
        names = await fill(clients, "s", PODS, SIZE)

        async def measure(client: Client, _: int) -> dict[str, float]:
            return await repeat(client, options.seconds, lambda index: write(names[index % PODS], next(marks)))

        return await take_turns(clients, options.rounds, measure)
