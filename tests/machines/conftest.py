"""A herd for each test: the shared nodes and controllers, and a namespace of its own."""

from collections.abc import Callable

import pytest

from tests.engines.api import Api
from tests.engines.engine import Engine
from tests.machines.herd import Herd


@pytest.fixture
def herd(herd_engine: Engine, api: Api, namespace: str, unique: Callable[..., str]) -> Herd:
    return Herd(api, namespace, unique)
