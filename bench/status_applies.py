"""Server-side apply of the status: how lists with several writers are written. 64 writers, pods of 4 KB."""

import asyncio
import itertools

from bench.load import APPLY_PATCH, WRITERS, Call, Client, connect_all, fill, pod_path, repeat
from bench.objects import status_apply
from bench.report import Report, load_rows
from bench.rounds import Measured, take_turns
from bench.sides import Options, Side, both

NAME = "status-applies"
PODS_APPLIED = 1000
SIZE = 4096


def run(options: Options) -> Report:
    with both(options) as (sides, notes):
        measured = asyncio.run(_measure(sides, options))
    title = f"server-side apply of the status of {PODS_APPLIED:,} pods, {WRITERS} writers"
    return Report(NAME, title, load_rows(measured, "applies"), notes + measured.notes(), rounds=measured.rounds)


async def _measure(sides: list[Side], options: Options) -> Measured:
    marks = itertools.count()
    async with connect_all(sides) as clients:
        names = await fill(clients, "s", PODS_APPLIED, SIZE)

        def apply(index: int) -> Call:
            name = names[index % PODS_APPLIED]
            path = pod_path(name, "status") + "?fieldManager=bench"
            return Call("PATCH", path, status_apply(name, next(marks)), APPLY_PATCH)

        async def measure(client: Client, _: int) -> dict[str, float]:
            return await repeat(client, options.seconds, apply)

        return await take_turns(clients, options.rounds, measure)
