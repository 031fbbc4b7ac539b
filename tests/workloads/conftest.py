"""Deployments, ReplicaSets and StatefulSets on an engine with controllers: ours on the embedded one, elsewhere Kubernetes' own."""

from collections.abc import AsyncIterator

import pytest

from tests.conftest import running_engine
from tests.engines.api import Api, connect
from tests.engines.engine import Engine
from tests.engines.pool import HERD
from tests.workloads.place import Place


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    return running_engine(request.config, HERD + request.param)


@pytest.fixture(scope="session")
async def api(engine: Engine) -> AsyncIterator[Api]:
    """Of that engine, and not of the one that all other tests share."""
    async with connect(engine) as connected:
        yield connected


@pytest.fixture
def place(api: Api, namespace: str) -> Place:
    return Place(api, namespace)
