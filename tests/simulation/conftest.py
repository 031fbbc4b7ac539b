"""Seeds: which ones run, and how a failing one is run again."""

from collections.abc import Generator

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    first, count = int(metafunc.config.getoption("--seed") or 0), int(metafunc.config.getoption("--seeds") or 1)
    # What is complete takes minutes with one seed already: it is played with the first one only, however many there are.
    for name, seeds in (("seed", range(first, first + count)), ("first_seed", (first,))):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, seeds, ids=lambda seed: f"seed{seed}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Whoever reads the failure can have it again, with one command."""
    report = yield
    parameters: dict[str, object] = item.callspec.params if hasattr(item, "callspec") else {}  # type: ignore[attr-defined]
    seed = parameters.get("seed", parameters.get("first_seed"))
    if report.failed and seed is not None:
        report.sections.append(("replay", f"pytest '{item.nodeid}' --seed {seed}"))
    return report
