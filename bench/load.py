"""The client, the same for both sides, and what it measures: one process, keep-alive connections, TLS, a client certificate."""

import asyncio
import gc
import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

import aiohttp
from yarl import URL

from bench.objects import NAMESPACE, PODS, Pods, namespace
from bench.sides import Side
from tests.engines.processes import client_context

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
WRITERS = 64
# Above this share of its one core, the client is what limits the faster side.
BUSY = 0.85
_PATIENCE = aiohttp.ClientTimeout(total=60)
_OPEN_ENDED = aiohttp.ClientTimeout(total=None)


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON


class Client:
    def __init__(self, side: Side, session: aiohttp.ClientSession) -> None:
        self.side = side
        self._session = session

    async def send(self, call: Call) -> bytes:
        headers = {"Content-Type": call.content_type} if call.body is not None else None
        url = URL(self.side.engine.server + call.path, encoded=True)
        async with self._session.request(call.method, url, data=call.body, headers=headers, timeout=_PATIENCE) as answer:
            body = await answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{self.side.name} answered {call.method} {call.path}: {answer.status} {body[:500]!r}")
            return body

    async def stream(self, path: str) -> aiohttp.ClientResponse:
        answer = await self._session.get(URL(self.side.engine.server + path, encoded=True), timeout=_OPEN_ENDED)
        answer.raise_for_status()
        return answer


@asynccontextmanager
async def connect(side: Side) -> AsyncGenerator[Client]:
    connector = aiohttp.TCPConnector(ssl=client_context(side.engine), limit=0, keepalive_timeout=600)
    # Not compressed: over a loopback that would measure zlib.
    headers = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "bench"}
    async with aiohttp.ClientSession(connector=connector, headers=headers, read_bufsize=2**20) as session:
        yield Client(side, session)


@asynccontextmanager
async def connect_all(sides: Sequence[Side]) -> AsyncGenerator[list[Client]]:
    """A client for each side, and the namespace that the benchmarks write to."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect(side)) for side in sides]
        for client in clients:
            await client.send(Call("POST", "/api/v1/namespaces", namespace()))
        yield clients


class Cost:
    """Time on the clock, and on the processors of both ends, of what runs inside `with`."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.seconds = self.server_cpu = self.client_cpu = 0.0

    def __enter__(self) -> "Cost":
        gc.collect()
        gc.disable()  # a collection here would look like a slow answer there
        self._before = time.perf_counter(), self._side.cpu_seconds(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        gc.enable()
        seconds, server, client = self._before
        self.seconds = time.perf_counter() - seconds
        self.client_cpu = time.process_time() - client
        self.server_cpu = self._side.cpu_seconds() - server

    @property
    def busy(self) -> float:
        return self.client_cpu / self.seconds


@contextmanager
def stopwatch(into: list[float]) -> Generator[None]:
    began = time.perf_counter()
    yield
    into.append(time.perf_counter() - began)


def percentile(values: Sequence[float], share: float) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))] if ranked else float("nan")


async def repeat(client: Client, seconds: float, call_of: Callable[[int], Call], writers: int = WRITERS) -> dict[str, float]:
    """So many writers, each sending its next request when the last was answered. `call_of` gets 0, 1, 2, ..., each once."""
    latencies: list[float] = []
    numbers = itertools.count()

    async def write(deadline: float) -> None:
        while time.perf_counter() < deadline:
            call = call_of(next(numbers))
            with stopwatch(latencies):
                await client.send(call)

    with Cost(client.side) as cost:
        deadline = time.perf_counter() + seconds
        await asyncio.gather(*(write(deadline) for _ in range(writers)))
    return load_figures(latencies, cost)


def load_figures(latencies: Sequence[float], cost: Cost) -> dict[str, float]:
    return {
        "count": len(latencies),
        "rate": len(latencies) / cost.seconds,
        "p50": percentile(latencies, 0.5) * 1000,
        "p99": percentile(latencies, 0.99) * 1000,
        "server_cpu": cost.server_cpu / len(latencies) * 1000,
        "client_cpu": cost.client_cpu / len(latencies) * 1000,
        "busy": cost.busy,
    }


async def fill(clients: Sequence[Client], prefix: str, count: int, size: int) -> list[str]:
    """Create so many pods on every side, and return their names."""
    pods = Pods(size)
    names = [pods.name(prefix, number) for number in range(count)]
    for client in clients:
        await each(lambda name, to=client: to.send(Call("POST", PODS, pods.named(name))), names)
    return names


async def each(action: Callable[[str], Awaitable[object]], names: Sequence[str], workers: int = 32) -> None:
    left = iter(names)

    async def work() -> None:
        for name in left:
            await action(name)

    await asyncio.gather(*(work() for _ in range(workers)))


def pod_path(name: str, subresource: str = "") -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{name}" + (f"/{subresource}" if subresource else "")
