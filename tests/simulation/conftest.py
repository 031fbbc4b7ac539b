"""Seeds: which ones run, and how a failing one is run again."""

from collections.abc import Generator

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        first, count = int(metafunc.config.getoption("--seed") or 0), int(metafunc.config.getoption("--seeds") or 1)
        metafunc.parametrize("seed", range(first, first + count), ids=lambda seed: f"seed{seed}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Whoever reads the failure can have it again, with one command."""
    report = yield
    seed = getattr(item, "callspec", None) and item.callspec.params.get("seed")  # type: ignore[attr-defined]
    if report.failed and seed is not None:
        report.sections.append(("replay", f"pytest '{item.nodeid}' --seed {seed}"))
    return report
