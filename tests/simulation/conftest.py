"""Seeds: which ones run, and how a failing one is run again."""

from collections.abc import Generator

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    first, count = int(metafunc.config.getoption("--seed") or 0), int(metafunc.config.getoption("--seeds") or 1)
    # What is complete takes minutes with one seed already: it is played with the first one only, however many there are.
    for name, seeds in (("seed", range(first, first + count)), ("first_seed", (first,))):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, seeds, ids=lambda seed: f"seed{seed}")


@pytest.fixture
def seeds(request: pytest.FixtureRequest) -> int:
    """How many are played: where they are many, each takes its share of what has to be complete."""
    return int(request.config.getoption("--seeds") or 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Whoever reads the failure can have it again, with one command."""
    report = yield
    parameters: dict[str, object] = item.callspec.params if hasattr(item, "callspec") else {}  # type: ignore[attr-defined]
    seed = parameters.get("seed", parameters.get("first_seed"))
    if report.failed and seed is not None:
        report.sections.append(("replay", f"pytest '{item.nodeid}' {_which(item, seed)}"))
    return report


def _which(item: pytest.Item, seed: object) -> str:
    """What is shared among many seeds needs all of them named, to be the same share."""
    first, count = item.config.getoption("--seed"), int(item.config.getoption("--seeds") or 1)
    shared = count > 1 and "seeds" in getattr(item, "fixturenames", ())
    return f"--seed {first or 0} --seeds {count}" if shared else f"--seed {seed}"
