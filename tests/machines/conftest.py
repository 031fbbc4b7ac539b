"""A herd for each test: shared nodes and controllers, and a namespace of its own."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.conftest import running_engine
from tests.engines.api import Api, connect
from tests.engines.engine import Engine
from tests.engines.pool import HERD
from tests.engines.resources import NODES
from tests.machines.herd import Herd
from tests.machines.migrations import Movers


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    """With our kinds, simulated nodes, controllers and scheduler: one of each kind for all that ask."""
    return running_engine(request.config, HERD + request.param)


@pytest.fixture(scope="session")
async def api(engine: Engine) -> AsyncIterator[Api]:
    """Of that engine, and not of the one that all other tests share."""
    async with connect(engine) as connected:
        yield connected


@pytest.fixture
async def herd(api: Api, namespace: str, unique: Callable[..., str]) -> AsyncIterator[Herd]:
    made = Herd(api, namespace, unique)
    yield made
    for node in made.nodes:
        await _take_away(api, node)


@pytest.fixture
async def movers(herd: Herd, unique: Callable[..., str]) -> Movers:
    label = unique("movers")
    return Movers(herd, label, [await herd.node(label) for _ in range(2)])


@pytest.fixture
async def storage(api: Api, unique: Callable[..., str]) -> AsyncIterator[str]:
    """The name of a node of the test's own, and of its storage."""
    name = unique("storage")
    yield name
    await _take_away(api, name)


async def _take_away(api: Api, node: str) -> None:
    """Nobody is there any more who would let it go. Where most nodes are away none is emptied: what a test leaves behind would keep
    others waiting for that."""
    await api.patch(NODES, node, {"metadata": {"finalizers": None}})
    await api.delete(NODES, node)
