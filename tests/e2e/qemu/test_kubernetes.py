"""Real guests on a real cluster: installed, kept and run by the program, each part with an identity of its own."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from herder.api import registry
from tests.behaviour.candidates import Candidate
from tests.behaviour.our_kinds import resource_of
from tests.behaviour.test_node_agents import Program, ready
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import until
from tests.e2e.qemu.sites import says_back
from tests.e2e.qemu.test_up import machine
from tests.engines.api import Api, connect
from tests.engines.credentials import binding, user
from tests.engines.embedded import find_program
from tests.engines.engine import Engine
from tests.engines.kubernetes import KUBELET_CLIENT
from tests.engines.resources import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, PODS
from tests.engines.waiting import eventually

pytestmark = pytest.mark.kubernetes
MACHINES, INSTANCES = resource_of(registry.MACHINE), resource_of(registry.INSTANCE)
NAME = "qemu-1"


@pytest.fixture(scope="module")
async def api(cluster: Engine) -> AsyncIterator[Api]:
    async with connect(cluster) as connected:
        yield connected


@pytest.fixture(scope="module")
async def node(cluster: Engine, api: Api, qemu: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """The folder of an agent that is a node of the cluster, with everything else that a machine needs."""
    folder = tmp_path_factory.mktemp("node")
    (await api.create(CLUSTER_ROLE_BINDINGS, binding("looks", "system:kubelet-api-admin", user(KUBELET_CLIENT)))).ok  # noqa: B018
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


async def test_a_machine_runs_a_real_guest_that_counts_and_goes_with_its_object(
    api: Api, cluster: Engine, node: Path, guest: Path, kubectl_program: Path
) -> None:
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
    _look_in(Kubectl(kubectl_program, cluster.kubeconfig, node, "default"), instance["launcherPodName"])
    (await api.delete(MACHINES, "web", "default")).ok  # noqa: B018

    async def gone() -> bool:
        left = (await api.list(PODS, "default")).ok["items"]
        return not left and not list(node.glob("nodes/*/guests/*"))

    await eventually(gone, patience=90)


def _look_in(kubectl: Kubectl, pod: str) -> None:
    """First with the certificate that the node made itself, then with the one that the cluster has signed."""
    assert "certificate signed by unknown authority" in kubectl.refused("logs", pod)
    assert "tick 2 " in kubectl("logs", pod, "--insecure-skip-tls-verify-backend")
    (asked,) = kubectl("get", "csr", "-o", "name").split()
    assert asked.removeprefix("certificatesigningrequest.certificates.k8s.io/").startswith(f"herder-serving-{NAME}-")
    kubectl("certificate", "approve", asked.partition("/")[2])
    until(lambda: kubectl.run("logs", pod).returncode == 0, "the signed certificate is not shown", 60)
    assert says_back(kubectl, pod)
