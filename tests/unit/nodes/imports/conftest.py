from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.nodes.imports.site import Importing, Site, running_site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running_site() as running:
        yield running


@pytest.fixture
async def importing(tmp_path: Path) -> AsyncIterator[Importing]:
    async with Importing(tmp_path / "storage") as ready:
        yield ready


@pytest.fixture
async def careful(tmp_path: Path) -> AsyncIterator[Importing]:
    """As an agent is unless it is told otherwise: nothing from the machine itself."""
    async with Importing(tmp_path / "storage", allow_local=False) as ready:
        yield ready
