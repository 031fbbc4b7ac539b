"""An API server of one's own: a webhook that is broken on purpose must not hold up anybody else's tests."""

from collections.abc import AsyncIterator, Iterator

import pytest

from herder.kube.client import Client
from herder.kube.resources import NAMESPACES
from herder.kube.webhook.settings import NAMESPACE
from tests.behaviour.our_kinds import install_definitions
from tests.conftest import or_skipped
from tests.engines.api import Api, connect
from tests.engines.engine import Engine
from tests.engines.kubernetes import run_api_server
from tests.engines.webhook import client_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with or_skipped(run_api_server(tmp_path_factory.mktemp("kubernetes"))) as running:
        yield running


@pytest.fixture(scope="module")
async def api(server: Engine) -> AsyncIterator[Api]:
    async with connect(server) as connected:
        await install_definitions(connected)
        yield connected


@pytest.fixture(scope="module")
async def client(server: Engine, api: Api) -> AsyncIterator[Client]:
    async with client_of(server) as connected:
        await connected.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        yield connected
