"""The herd of the machines' tests, with nodes of each test's own."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.jobs.stage import Stage
from tests.machines.conftest import api, engine, herd
from tests.machines.herd import Herd

__all__ = ["api", "engine", "herd"]


@pytest.fixture
async def stage(herd: Herd, unique: Callable[..., str]) -> AsyncIterator[Stage]:
    made = Stage(herd, unique)
    yield made
    await made.clear_away()
