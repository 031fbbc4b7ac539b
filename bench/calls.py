"""What a write over the engine's unix socket costs both of its ends: by hand, beside a client and a server for anybody."""

import asyncio
import time

from bench.objects import NAMESPACE, namespace
from bench.report import LESS, Report, Row
from bench.rounds import Figures, Measured
from bench.sides import Options, Side, herder, temporary
from herder.kube.client import MERGE_PATCH
from herder.kube.credentials import Anonymous
from herder.kube.http import HttpTransport, session_over_socket
from herder.kube.transport import Call, Transport
from herder.kube.unix import SocketTransport

NAME = "calls"
BY_HAND, LIBRARY = "by hand", "aiohttp"
# As many as a controller works on at once.
AT_ONCE = 8
_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


def run(options: Options) -> Report:
    count = options.pick(2000, 300)
    with temporary(options) as folder, herder(folder / "up") as side:
        measured = asyncio.run(_measure(side, count, options.rounds))
    told = {
        "one": "CPU of the client for a write, one at a time",
        "many": f"… {AT_ONCE} at a time",
        "server": "CPU of the server for a write",
    }
    rows = [
        Row(what, "µs", measured.median(BY_HAND, figure), measured.median(LIBRARY, figure), LESS) for figure, what in told.items()
    ]
    return Report(NAME, f"{count:,} merge patches over a unix socket", rows, sides=(BY_HAND, LIBRARY), rounds=measured.rounds)


async def _measure(side: Side, count: int, rounds: int) -> Measured:
    measured = Measured()
    socket = side.engine.kubeconfig.parent / "data" / "server.sock"
    session = session_over_socket(socket, "bench")
    ways: dict[str, Transport] = {
        BY_HAND: SocketTransport(socket, "bench"),
        LIBRARY: HttpTransport(session, "http://herder", Anonymous()),
    }
    await ways[BY_HAND].send(Call("POST", "/api/v1/namespaces", body=namespace()))
    await ways[BY_HAND].send(Call("POST", _MAPS, body=b'{"metadata":{"name":"m"}}'))
    for number in range(rounds + 1):
        for name, way in ways.items():
            before = side.cpu_seconds()
            figures: Figures = {"one": await _cpu(way, count, 1), "many": await _cpu(way, count, AT_ONCE)}
            figures["server"] = 1e6 * (side.cpu_seconds() - before) / (2 * count)
            if number:  # the first one warms up
                measured.add(name, figures)
    for way in ways.values():
        await way.close()
    return measured


async def _cpu(way: Transport, count: int, at_once: int) -> float:
    """Of this process, in microseconds for each write."""
    left = iter(range(count))

    async def work() -> None:
        for number in left:
            body = b'{"data":{"count":"%d"}}' % number
            reply = await way.send(Call("PATCH", f"{_MAPS}/m", {"fieldManager": "bench"}, body, MERGE_PATCH))
            assert reply.status == 200, reply

    before = time.process_time()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return 1e6 * (time.process_time() - before) / count
