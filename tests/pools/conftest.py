"""A pool for each test: the herd of the machines' tests, and a namespace of its own."""

from collections.abc import Callable

import pytest

from tests.engines.api import Api
from tests.machines.conftest import api, engine, herd, movers
from tests.machines.herd import Herd
from tests.pools.pool import Pool

__all__ = ["api", "engine", "herd", "movers"]


@pytest.fixture
def pool(herd: Herd) -> Pool:
    return Pool(herd)


@pytest.fixture
def second(api: Api, herd: Herd, unique: Callable[..., str]) -> Pool:
    """Another pool of the same namespace."""
    return Pool(herd, "other")
