"""The program with all that it runs: controllers, scheduler and nodes."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.herds import apart, api_of
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up
from tests.engines.api import Api


@pytest.fixture(scope="package")
def herd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("running"), nodes=2) as running:
        yield running


@pytest.fixture(scope="package")
def kubectl(kubectl_program: Path, herd: Up, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(kubectl_program, herd.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="package")
async def api(herd: Up, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    async with api_of(herd, tmp_path_factory) as connected:
        yield connected


@pytest.fixture
async def here(kubectl: Kubectl, api: Api) -> Kubectl:
    return await apart(kubectl, api)
