"""Lists of 5,000 pods of 6 KB, to the last byte: whole, in pages, and as kubectl asks for them."""

import asyncio

import msgspec

from bench.download import Downloader
from bench.load import JSON, Call, Client, Cost, connect_all, fill
from bench.objects import PODS
from bench.report import Report, Row, at_most, row_of
from bench.rounds import Measured, take_turns
from bench.sides import Options, Side, both

NAME = "lists"
COUNT = 5000
# As sent; defaults and managed fields make about 6 KB of it.
SIZE = 2200
PAGE = 500
LIMIT_MS = 100
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"


class _Metadata(msgspec.Struct):
    token: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _Metadata


_page = msgspec.json.Decoder(_Page)


def run(options: Options) -> Report:
    with both(options) as (sides, notes):
        measured = asyncio.run(_measure(sides, options))
    return Report(NAME, f"{COUNT:,} pods of 6 KB, to the last byte", _rows(measured), notes, rounds=measured.rounds)


async def _measure(sides: list[Side], options: Options) -> Measured:
    async with connect_all(sides) as clients:
        await fill(clients, "l", COUNT, SIZE)
        return await take_turns(clients, options.pick(15, 5), _round)


async def _round(client: Client, _: int) -> dict[str, float]:
    downloader = Downloader(client.side)
    with Cost(client.side) as whole:
        everything = await asyncio.to_thread(downloader.get, PODS, JSON)
    with Cost(client.side) as paged:
        await _all_pages(client)
    with Cost(client.side) as table:
        rows = await asyncio.to_thread(downloader.get, PODS, TABLE)
    return {
        "whole": everything.seconds * 1000,
        "whole_server": whole.server_cpu * 1000,
        "whole_client": whole.client_cpu * 1000,
        "size": everything.size / COUNT / 1000,
        "paged": paged.seconds * 1000,
        "table": rows.seconds * 1000,
        "table_server": table.server_cpu * 1000,
        "table_size": rows.size / 1e6,
    }


async def _all_pages(client: Client) -> None:
    token = ""
    while True:
        page = await client.send(Call("GET", f"{PODS}?limit={PAGE}" + (f"&continue={token}" if token else "")))
        token = _page.decode(page).metadata.token
        if not token:
            return


def _rows(measured: Measured) -> list[Row]:
    return [
        at_most(row_of(measured, "whole", "whole list", "ms"), LIMIT_MS, f"≤ {LIMIT_MS} ms"),
        row_of(measured, "whole_server", "… server CPU", "ms"),
        row_of(measured, "whole_client", "… client CPU", "ms", ""),
        row_of(measured, "size", "… size of one pod", "KB", ""),
        row_of(measured, "paged", f"all, in pages of {PAGE}", "ms"),
        row_of(measured, "table", "as Table", "ms"),
        row_of(measured, "table_server", "… server CPU", "ms"),
        row_of(measured, "table_size", "… size", "MB", ""),
    ]
