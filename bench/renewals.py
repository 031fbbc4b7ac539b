"""Renewals of Leases: nearly all that is written in a cluster in which nothing happens. 64 writers, merge patches."""

import asyncio
import itertools

import msgspec

from bench.load import MERGE_PATCH, WRITERS, Call, Client, connect_all, each, repeat
from bench.objects import NAMESPACE
from bench.report import Report, load_rows
from bench.rounds import Measured, take_turns
from bench.sides import Options, Side, both
from herder.api.world import micro_timestamp

NAME = "renewals"
NODES = 1000
_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_START = 1_900_000_000


def run(options: Options) -> Report:
    with both(options) as (sides, notes):
        measured = asyncio.run(_measure(sides, options))
    title = f"merge patches that renew the Leases of {NODES:,} nodes, {WRITERS} writers"
    return Report(NAME, title, load_rows(measured, "renewals"), notes + measured.notes(), rounds=measured.rounds)


async def _measure(sides: list[Side], options: Options) -> Measured:
    names = [f"node-{number:04d}" for number in range(NODES)]
    times = itertools.count(_START)
    async with connect_all(sides) as clients:
        for client in clients:
            await each(lambda name, to=client: to.send(Call("POST", _LEASES, _lease(name))), names)

        def renew(index: int) -> Call:
            name = names[index % NODES]
            return Call("PATCH", f"{_LEASES}/{name}", msgspec.json.encode({"spec": _spec(name, next(times))}), MERGE_PATCH)

        async def measure(client: Client, _: int) -> dict[str, float]:
            return await repeat(client, options.seconds, renew)

        return await take_turns(clients, options.rounds, measure)


def _lease(name: str) -> bytes:
    return msgspec.json.encode({"metadata": {"name": name}, "spec": _spec(name, _START)})


def _spec(name: str, time: int) -> dict[str, str | int]:
    """As a node's agent sends it."""
    return {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micro_timestamp(time)}
