"""One engine inside the process for all examples of a file, and how many examples are tried.

By default few, and the same on every run. HERDER_FUZZ=20 tries twenty times as many, other ones each time.
"""

import asyncio
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from herder.api.registry import KINDS
from herder.server.request import ENGINE, Request, Response, Stream, parse_query
from tests.unit.server.inside import Inside, engine_inside

TIMES = int(os.environ.get("HERDER_FUZZ", "0"))
settings.register_profile(
    "herder",
    max_examples=max(1, TIMES) * 120,
    derandomize=not TIMES,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("herder")

# Of the processor, however busy the machine: nothing that one request may say takes longer. And of the clock.
LONGEST, PATIENCE = 5.0, 60.0
# All requests of a file together, and what tries them; a single body may have 3 MiB.
MOST_GROWTH = 512 * 1024 * 1024
# What kube-apiserver answers so as well, as the tests of behaviour show.
DOCUMENTED = {
    (500, "resourceVersion should not be set"),
    (504, "Too large resource version"),
    (500, "the spec replicas field"),
    (500, "target."),
    (500, "more than one PodDisruptionBudget"),
}


class Victim:
    """Asks, and checks what must hold for every answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, inside: Inside) -> None:
        self.loop = loop
        self.inside = inside

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        where, _, query = path.partition("?")
        named = {name.replace("_", "-").title(): value for name, value in headers.items()}
        request = Request(method=method, path=where, query=parse_query(query), headers=named, body=body, user=ENGINE)
        return self.send(request)

    def send(self, request: Request) -> tuple[int, bytes]:
        began, worked = time.monotonic(), time.process_time()
        code, answer = self.loop.run_until_complete(self._send(request))
        assert time.process_time() - worked < LONGEST, request
        assert time.monotonic() - began < PATIENCE, request
        if code >= 500:
            assert any(code == known and text in answer.decode() for known, text in DOCUMENTED), (request, answer)
        return code, answer

    async def _send(self, request: Request) -> tuple[int, bytes]:
        answer = await self.inside.router.handle(request)
        if isinstance(answer, Response):
            return answer.status, answer.body
        assert isinstance(answer, Stream), "nothing becomes a WebSocket where there is no way to a node"
        return 200, await _beginning(answer)

    def still_well(self) -> None:
        code, _ = self.ask("GET", "/readyz")
        assert code == 200
        code, _ = self.ask("GET", "/api/v1/namespaces/default")
        assert code == 200


async def _beginning(stream: Stream) -> bytes:
    """What comes of a watch at once."""
    chunks: Any = stream.chunks()
    try:
        async with asyncio.timeout(0.01):
            return await anext(chunks, b"")
    except TimeoutError:
        return b""
    finally:
        await chunks.aclose()


def _most_memory() -> int:
    """That this process has ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        running = engine_inside(folder, kinds=KINDS)
        found = Victim(loop, loop.run_until_complete(running.__aenter__()))
        before = _most_memory()
        try:
            yield found
            found.still_well()
            assert _most_memory() - before < MOST_GROWTH
        finally:
            loop.run_until_complete(running.__aexit__(None, None, None))
