"""A node's runtime with real QEMU, and the tiny guest to run in it."""

from __future__ import annotations

import os
import pwd
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from herder.nodes.runtimes.qemu import RunAs, ask
from herder.nodes.runtimes.qemu.facts import Facts
from tests.conftest import or_skipped
from tests.e2e.guest.conftest import guest, migrations, qemu  # fixtures
from tests.e2e.qemu.node import Node
from tests.engines.engine import Engine
from tests.engines.kubernetes import run_kubernetes

__all__ = ["guest", "migrations", "qemu"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A real one of a file's own: what its nodes do is nobody else's business."""
    with or_skipped(run_kubernetes(tmp_path_factory.mktemp("cluster"))) as running:
        yield running


@pytest.fixture(scope="session")
def run_as() -> RunAs | None:
    """As agents do it: never as root."""
    nobody = pwd.getpwnam("nobody")
    return RunAs(nobody.pw_uid, nobody.pw_gid) if os.geteuid() == 0 else None


@pytest.fixture(scope="session")
async def facts(qemu: str, run_as: RunAs | None) -> Facts:
    return await ask(qemu, run_as)


@pytest.fixture(scope="session")
def accelerator(facts: Facts) -> str:
    return facts.accelerator


@pytest.fixture
async def node(tmp_path: Path, facts: Facts, run_as: RunAs | None, guest: Path) -> AsyncIterator[Node]:
    one = Node(tmp_path / "node", facts, run_as, guest)
    await one.open()
    yield one
    await one.end()


@pytest.fixture
async def other(tmp_path: Path, facts: Facts, run_as: RunAs | None, guest: Path) -> AsyncIterator[Node]:
    one = Node(tmp_path / "other node", facts, run_as, guest)
    await one.open()
    yield one
    await one.end()
