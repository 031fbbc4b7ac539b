"""A herd for each test: shared nodes and controllers, and a namespace of its own."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.conftest import running_engine
from tests.engines.api import Api, connect
from tests.engines.engine import Engine
from tests.engines.pool import HERD
from tests.machines.herd import Herd


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
def herd(api: Api, namespace: str, unique: Callable[..., str]) -> Herd:
    return Herd(api, namespace, unique)
