"""An engine and a herd of these tests' own: the settings of a cluster, and the levels of its nodes, are about all that is in it."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.conftest import or_skipped
from tests.engines.api import Api, connect
from tests.engines.engine import NAMES, Engine
from tests.engines.herd import run_herd
from tests.engines.install import install_on
from tests.engines.pool import STARTERS
from tests.engines.resources import NAMESPACES
from tests.levels.cluster import Mixed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "own" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--engine")
        metafunc.parametrize("own", NAMES if chosen == "all" else [chosen], indirect=True, scope="session")


@pytest.fixture(scope="session")
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Its only nodes are those that tests make."""
    folder = tmp_path_factory.mktemp("levels")
    with or_skipped(STARTERS[request.param](folder)) as engine:
        install_on(engine)
        with run_herd(engine, folder, nodes=0):
            yield engine


@pytest.fixture(scope="session")
async def api(own: Engine) -> AsyncIterator[Api]:
    async with connect(own) as connected:
        yield connected


@pytest.fixture
async def mixed(api: Api, unique: Callable[..., str]) -> AsyncIterator[Mixed]:
    name = unique("mixed")
    (await api.create(NAMESPACES, {"metadata": {"name": name}})).ok  # noqa: B018
    made = Mixed(api, name, unique)
    await made.begin()
    yield made
    await made.clear()
