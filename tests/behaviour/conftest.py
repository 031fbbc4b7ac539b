"""What several of the behaviour tests share."""

import uuid
from collections.abc import AsyncIterator, Callable

import pytest

from tests.behaviour.crds import install, widgets_definition
from tests.engines.api import Api
from tests.engines.resources import CRDS, Resource


@pytest.fixture
def group(unique: Callable[..., str]) -> str:
    """A group for the definitions of one test."""
    return f"{unique('g')}.example.com"


@pytest.fixture(scope="session")
async def widgets(api: Api) -> AsyncIterator[Resource]:
    """One definition for all tests that only use what it defines."""
    body = widgets_definition(f"w-{uuid.uuid4().hex[:8]}.example.com")
    yield await install(api, body)
    await api.delete(CRDS, body["metadata"]["name"])
