"""What every herd of the tests comes with, whatever runs in it: kubectl, the API, and a namespace for each test."""

import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up
from tests.engines.api import Api, connect
from tests.engines.resources import NAMESPACES


@asynccontextmanager
async def api_of(herd: Up, folders: pytest.TempPathFactory) -> AsyncGenerator[Api]:
    async with connect(herd.connection(folders.mktemp("admin"))) as connected:
        yield connected


async def apart(kubectl: Kubectl, api: Api) -> Kubectl:
    """kubectl in a namespace that no other test uses."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    (await api.create(NAMESPACES, {"metadata": {"name": name}})).ok  # noqa: B018
    return kubectl.inside(name)
