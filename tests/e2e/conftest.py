"""One `herder up` for all tests that only use it, and kubectl pointed at it."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import EngineMissing
from tests.e2e.herds import apart, api_of
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up
from tests.engines.api import Api
from tests.engines.engine import Unavailable
from tests.engines.kubectl import find_kubectl


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    try:
        return find_kubectl()
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None


@pytest.fixture(scope="session")
def herd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The program, with two nodes that have registered and then do nothing: kubectl is the point, and nobody else touches what it
    writes."""
    with Up(tmp_path_factory.mktemp("herd"), "--no-controllers", nodes=2) as running:
        agents = running.child("agents")
        os.kill(agents, signal.SIGSTOP)
        yield running
        os.kill(agents, signal.SIGCONT)


@pytest.fixture(scope="session")
def kubectl(kubectl_program: Path, herd: Up, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(kubectl_program, herd.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
async def api(herd: Up, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    async with api_of(herd, tmp_path_factory) as connected:
        yield connected


@pytest.fixture
async def here(kubectl: Kubectl, api: Api) -> Kubectl:
    return await apart(kubectl, api)
