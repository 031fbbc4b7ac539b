"""Real guests on a real cluster: installed, kept and run by the program, each part with an identity of its own."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from herder.api import registry
from tests.behaviour.candidates import Candidate
from tests.behaviour.our_kinds import resource_of
from tests.behaviour.test_node_agents import Program, ready
from tests.conftest import EngineMissing
from tests.e2e.qemu.test_up import machine
from tests.engines.api import Api, connect
from tests.engines.embedded import find_program
from tests.engines.engine import Engine, Unavailable
from tests.engines.kubernetes import run_kubernetes
from tests.engines.resources import CONFIG_MAPS, PODS
from tests.engines.waiting import eventually

pytestmark = pytest.mark.kubernetes
MACHINES, INSTANCES = resource_of(registry.MACHINE), resource_of(registry.INSTANCE)
NAME = "qemu-1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    try:
        with run_kubernetes(tmp_path_factory.mktemp("cluster")) as running:
            yield running
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None


@pytest.fixture(scope="module")
async def api(cluster: Engine) -> AsyncIterator[Api]:
    async with connect(cluster) as connected:
        yield connected


@pytest.fixture(scope="module")
async def node(cluster: Engine, api: Api, qemu: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """The folder of an agent that is a node of the cluster, with everything else that a machine needs."""
    folder = tmp_path_factory.mktemp("node")
    install = [str(find_program()), "install", "--kubeconfig", str(cluster.kubeconfig)]
    await asyncio.to_thread(subprocess.run, install, check=True, capture_output=True, timeout=120)
    keeping = Candidate([str(find_program()), "controllers", "--kubeconfig", str(cluster.kubeconfig)], folder / "controllers.log")
    agent = Program(cluster, folder, NAME)
    agent.start("--runtime", "qemu", "--storage", str(folder / "storage"))
    try:
        await ready(api, NAME)
        yield folder / "storage"
    finally:
        agent.close()
        keeping.close()


async def test_a_machine_runs_a_real_guest_that_counts_and_goes_with_its_object(api: Api, node: Path, guest: Path) -> None:
    content = base64.b64encode(guest.read_bytes()).decode()
    (await api.create(CONFIG_MAPS, {"metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}}, "default")).ok  # noqa: B018
    (await api.create(MACHINES, machine("web", terminationGracePeriodSeconds=5), "default")).ok  # noqa: B018

    async def running() -> bool:
        status = (await api.get(MACHINES, "web", "default")).ok.get("status", {})
        assert status.get("printableStatus") == "Running", status
        return True

    await eventually(running, patience=120)
    instance = (await api.get(INSTANCES, "web", "default")).ok["status"]
    assert (instance["runtime"], instance["nodeName"]) == ("qemu", NAME)
    (log,) = node.glob("nodes/*/guests/*/console.log")

    async def counts() -> bool:
        return "tick 2 " in log.read_text()

    await eventually(counts, patience=60)
    (await api.delete(MACHINES, "web", "default")).ok  # noqa: B018

    async def gone() -> bool:
        left = (await api.list(PODS, "default")).ok["items"]
        return not left and not list(node.glob("nodes/*/guests/*"))

    await eventually(gone, patience=90)
