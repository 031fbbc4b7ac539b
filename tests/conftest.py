"""Which engine the tests run against, and the fixtures that every test through the API uses."""

import os
import signal
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import pytest
import structlog

from tests.engines.api import Api, connect
from tests.engines.engine import NAMES, Engine, Unavailable
from tests.engines.pool import Answer, Broker, Pool, ask_broker
from tests.engines.resources import NAMESPACES
from tests.engines.schemas import compile_once
from tests.examples import try_only
from tests.order import in_order

T = TypeVar("T")


class EngineMissing(pytest.skip.Exception):
    """Skips all tests of an engine for one and the same reason."""


@contextmanager
def or_skipped(running: AbstractContextManager[T]) -> Generator[T]:
    """What a machine may lack: then the tests that need it are skipped, for the reason that it gives."""
    try:
        with running as made:
            yield made
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None


_POOL = pytest.StashKey[Pool]()
_BROKER = pytest.StashKey[Broker]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=[*NAMES, "all"], default="embedded", help="what tests/behaviour runs against")
    parser.addoption("--examples", type=int, default=100, help="percent of the examples that properties are tried with")
    parser.addoption("--by-module", action="store_true", help="in an order for workers that take whole modules")
    parser.addoption("--seed", type=int, default=1, help="the first seed of tests/simulation")
    parser.addoption("--seeds", type=int, default=1, help="how many seeds tests/simulation tries, from the first one on")


def pytest_configure(config: pytest.Config) -> None:
    # A shell that runs us in the background has interrupts ignored, by us and by all programs that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # As our processes write logs: a picture of all variables at each step of a traceback takes seconds.
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, plain])
    compile_once()
    share: Any = config.getoption("--examples")
    if share != 100:
        try_only(share)
    if not _is_worker(config):
        config.stash[_POOL] = pool = Pool()
        config.add_cleanup(pool.close)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Only in the process that starts the workers of a parallel run."""
    stash: pytest.Stash = node.config.stash
    if _BROKER not in stash:
        stash[_BROKER] = Broker(stash[_POOL])
    node.workerinput["engines"] = stash[_BROKER].address


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--engine")
        metafunc.parametrize("engine", NAMES if chosen == "all" else [chosen], indirect=True, scope="session")


# After pytest has put tests of one engine together.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of what only one engine has are not asked of the other. Where workers take whole modules, those are in order."""
    kept = [item for item in items if _asked(item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if not _asked(item)])
    if config.getoption("--by-module"):
        places = {path: place for place, path in enumerate(in_order(Counter(map(_module, kept))))}
        kept.sort(key=lambda item: places[_module(item)])
    items[:] = kept


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _asked(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("only_on")
    parameters: Any = getattr(item, "callspec", None)
    return marker is None or parameters is None or parameters.params.get("engine") == marker.args[0]


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    return running_engine(request.config, request.param)


def running_engine(config: pytest.Config, name: str) -> Engine:
    answer = _ask(config, name)
    if isinstance(answer, Unavailable):
        raise EngineMissing(str(answer))
    if isinstance(answer, RuntimeError):
        pytest.fail(f"the {name} engine did not start: {answer}", pytrace=False)
    return answer


def _ask(config: pytest.Config, name: str) -> Answer:
    if _is_worker(config):
        return ask_broker(vars(config)["workerinput"]["engines"], name)
    return config.stash[_POOL].ask(name)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """All tests that miss an engine are one line of the summary: it folds those that were skipped at the same place."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, EngineMissing):
        report.longrepr = (__file__, 0, f"Skipped: {call.excinfo.value}")
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI everything is there: what could not run there is a failure, not a footnote."""
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if os.environ.get("CI") and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line("A skipped test is a failure where CI is set.", red=True)


@pytest.fixture(scope="session")
async def api(engine: Engine) -> AsyncIterator[Api]:
    async with connect(engine) as connected:
        yield connected


@pytest.fixture
def unique() -> Callable[..., str]:
    """Names that no other test uses, for what lives outside namespaces."""
    return lambda prefix="test": f"{prefix}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
async def namespace(api: Api, unique: Callable[..., str]) -> str:
    """A namespace of the test's own. It goes with the engine: a real one is busy for a minute with clearing away a few
    hundred of them, and the tests of that very clearing would wait behind."""
    name = unique()
    (await api.create(NAMESPACES, {"metadata": {"name": name}})).ok  # noqa: B018
    return name
