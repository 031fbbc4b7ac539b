"""Status patches: what node agents send most. 64 writers, merge patches, pods of 4 KB."""

import asyncio
import itertools

from bench.load import MERGE_PATCH, WRITERS, Call, Client, connect_all, fill, pod_path, repeat
from bench.objects import status_patch
from bench.report import Report, load_rows
from bench.rounds import Measured, take_turns
from bench.sides import Options, Side, both

NAME = "status-patches"
PODS_PATCHED = 1000
SIZE = 4096


def run(options: Options) -> Report:
    with both(options) as (sides, notes):
        measured = asyncio.run(_measure(sides, options))
    title = f"merge patches of the status of {PODS_PATCHED:,} pods, {WRITERS} writers"
    return Report(NAME, title, load_rows(measured, "patches"), notes + measured.notes(), rounds=measured.rounds)


async def _measure(sides: list[Side], options: Options) -> Measured:
    marks = itertools.count()
    async with connect_all(sides) as clients:
        names = await fill(clients, "s", PODS_PATCHED, SIZE)

        def patch(index: int) -> Call:
            path = pod_path(names[index % PODS_PATCHED], "status")
            return Call("PATCH", path, status_patch(next(marks)), MERGE_PATCH)

        async def measure(client: Client, _: int) -> dict[str, float]:
            return await repeat(client, options.seconds, patch)

        return await take_turns(clients, options.rounds, measure)
