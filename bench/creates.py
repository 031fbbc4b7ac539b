"""Durable creates: 64 writers, a pod of 4 KB each. Of one template, as workloads make them; and no two of them alike."""

import asyncio

from bench.load import WRITERS, Call, Client, connect_all, repeat
from bench.objects import PODS, Pods
from bench.report import MORE, Report, Row, load_rows, promised, row_of
from bench.rounds import Measured, take_turns
from bench.sides import Options, Side, both

NAME = "creates"
SIZE = 4096
TIMES_FASTER = 3


def run(options: Options) -> Report:
    with both(options) as (sides, notes):
        measured = asyncio.run(_measure(sides, options))
    title = f"durable creates of a 4 KB pod, {WRITERS} writers"
    return Report(NAME, title, _rows(measured), notes + measured.notes(), rounds=measured.rounds)


async def _measure(sides: list[Side], options: Options) -> Measured:
    alike, unlike = Pods(SIZE), Pods(SIZE, unlike=True)

    async def measure(client: Client, number: int) -> dict[str, float]:
        def create(pods: Pods, prefix: str, index: int) -> Call:
            return Call("POST", PODS, pods.named(pods.name(f"{prefix}{number}", index)))

        figures = await repeat(client, options.seconds, lambda index: create(alike, "r", index))
        others = await repeat(client, options.seconds, lambda index: create(unlike, "u", index))
        return figures | {f"unlike_{name}": value for name, value in others.items()}

    async with connect_all(sides) as clients:
        return await take_turns(clients, options.rounds, measure)


def _rows(measured: Measured) -> list[Row]:
    rate, p50, p99, *others = load_rows(measured, "creates")
    faster = None if rate.advantage is None else rate.advantage >= TIMES_FASTER
    quicker = None if p99.ours is None or p50.theirs is None else p99.ours <= p50.theirs
    apart = [
        row_of(measured, "unlike_rate", "no two alike: creates", "/s", MORE),
        row_of(measured, "unlike_p99", "… p99", "ms"),
        row_of(measured, "unlike_server_cpu", "… server CPU each", "ms"),
    ]
    return [promised(rate, f"{TIMES_FASTER}x", faster), p50, promised(p99, "its p50", quicker), *others, *apart]
