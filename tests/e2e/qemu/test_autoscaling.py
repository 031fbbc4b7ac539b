"""A pool of real guests on a real cluster follows its load: the real metrics-server asks our agent, the real autoscaler scales."""

from __future__ import annotations

import asyncio
import base64
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from herder.api import labels
from tests.behaviour.candidates import Candidate
from tests.behaviour.test_node_agents import Program, ready
from tests.conftest import EngineMissing
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import until
from tests.e2e.qemu.pools import POOLS, counting
from tests.engines.api import Api, Json, connect
from tests.engines.credentials import binding, user
from tests.engines.embedded import find_program
from tests.engines.engine import Engine, Unavailable
from tests.engines.kubernetes import KUBELET_CLIENT
from tests.engines.metrics_server import running_metrics_server
from tests.engines.resources import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, PODS, Resource
from tests.engines.waiting import eventually

pytestmark = pytest.mark.kubernetes
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
NAME, POOL, HERE = "qemu-1", "busy", "default"
# A metrics-server looks every 10 s and tells what two looks differ by; on a machine with much else to do all of it takes longer.
PATIENCE = 240.0
# Percent of what a guest asks for, 20m: ten times what an idle one takes. One that never rests takes it for three, also where
# it gets no more than a tenth of a processor.
UTILIZATION = 200
AIM = 40
# As much as it can: one that is held to some rate takes more or less of a processor from machine to machine.
BUSY, IDLE = "dirty=4G/s", "dirty=0"


@pytest.fixture(scope="module")
async def api(cluster: Engine) -> AsyncIterator[Api]:
    async with connect(cluster) as connected:
        yield connected


@pytest.fixture(scope="module")
def kubectl(cluster: Engine, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(kubectl_program, cluster.kubeconfig, tmp_path_factory.mktemp("home"), HERE)


@pytest.fixture(scope="module")
async def measured(
    cluster: Engine, api: Api, kubectl: Kubectl, qemu: str, guest: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    """Our controllers, an agent that is a node of the cluster with a signed certificate, and the metrics-server."""
    folder = tmp_path_factory.mktemp("node")
    (await api.create(CLUSTER_ROLE_BINDINGS, binding("looks", "system:kubelet-api-admin", user(KUBELET_CLIENT)))).ok  # noqa: B018
    install = [str(find_program()), "install", "--kubeconfig", str(cluster.kubeconfig)]
    await asyncio.to_thread(subprocess.run, install, check=True, capture_output=True, timeout=120)
    keeping = Candidate([str(find_program()), "controllers", "--kubeconfig", str(cluster.kubeconfig)], folder / "controllers.log")
    agent = Program(cluster, folder, NAME)
    agent.start("--runtime", "qemu", "--storage", str(folder / "storage"))
    try:
        await ready(api, NAME)
        await asyncio.to_thread(_approve, kubectl)
        content = base64.b64encode(guest.read_bytes()).decode()
        kernel = {"metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}}
        (await api.create(CONFIG_MAPS, kernel, HERE)).ok  # noqa: B018
        async with running_metrics_server(cluster, api, folder):
            yield
        # Guests outlive their agent, as they should: those of the test go before it does.
        await _no_guests(api)
    except Unavailable as reason:
        raise EngineMissing(str(reason)) from None
    finally:
        agent.close()
        keeping.close()


async def _no_guests(api: Api) -> None:
    await api.delete(POOLS, POOL, HERE)

    async def look() -> bool:
        return not (await api.list(PODS, HERE, labelSelector=f"{labels.APP}={labels.LAUNCHER}")).items

    await eventually(look, PATIENCE)


def _approve(kubectl: Kubectl) -> None:
    """A metrics-server that checks whom it talks to takes no certificate but one that the cluster has signed."""
    asked = until(lambda: kubectl("get", "csr", "-o", "name").split(), "no certificate was asked for", 60)
    kubectl("certificate", "approve", asked[0].partition("/")[2])


def autoscaler() -> Json:
    at_once = {"stabilizationWindowSeconds": 0}
    target = {"type": "Utilization", "averageUtilization": UTILIZATION}
    spec = {
        "scaleTargetRef": {"apiVersion": POOLS.api_version, "kind": POOLS.kind, "name": POOL},
        "minReplicas": 1,
        "maxReplicas": 3,
        "behavior": {"scaleUp": at_once, "scaleDown": at_once},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    return {"metadata": {"name": POOL}, "spec": spec}


class Scaled:
    def __init__(self, api: Api, kubectl: Kubectl, herder: Herder) -> None:
        self._api, self._kubectl, self._herder = api, kubectl, herder

    async def tell(self, machine: str, load: str) -> None:
        """On its console, as a person would."""

        async def heard() -> bool:
            await asyncio.to_thread(self._herder.run, "console", machine, stdin=f"{load}\n\x1d")
            said = (await asyncio.to_thread(self._herder.run, "logs", machine)).out
            settings = re.findall(r"^settings .*?dirty=(\S+)", said, re.MULTILINE)
            assert settings and settings[-1].startswith("0") == (load == IDLE), said[-2000:]
            return True

        await eventually(heard, PATIENCE)

    async def becomes(self, replicas: int) -> None:
        async def look() -> bool:
            pool = (await self._api.get(POOLS, POOL, HERE)).ok
            told = pool["spec"]["replicas"], pool.get("status", {}).get("readyReplicas", 0)
            assert told == (replicas, replicas), (told, (await self._api.get(AUTOSCALERS, POOL, HERE)).body)
            return True

        await eventually(look, PATIENCE)

    async def rests(self) -> list[str]:
        """What kubectl top says of the only guest, once its start is no longer in it."""

        async def look() -> list[str]:
            ((pod, cpu, memory),) = await self.top("pod", "-l", f"{labels.POOL}={POOL}")
            assert cpu.endswith("m") and int(cpu[:-1]) < AIM, cpu
            return [pod, memory]

        return await eventually(look, PATIENCE)

    async def top(self, *words: str) -> list[list[str]]:
        """The rows of kubectl top, once there are any: at first nothing has been measured twice."""

        async def rows() -> list[list[str]]:
            told = await asyncio.to_thread(self._kubectl.run, "top", *words, "--no-headers")
            assert told.returncode == 0, told.stderr
            return [line.split() for line in told.stdout.splitlines()]

        return await eventually(rows, PATIENCE)


async def test_a_pool_of_loaded_guests_is_scaled_out_and_in(
    api: Api, kubectl: Kubectl, cluster: Engine, measured: None, tmp_path: Path
) -> None:
    scaled = Scaled(api, kubectl, Herder(cluster.kubeconfig, tmp_path, HERE))
    machine = {"runStrategy": "Always", "template": {"spec": counting("rate=1 working-set=8M")}}
    pool = {"metadata": {"name": POOL}, "spec": {"replicas": 1, "template": {"spec": machine}}}
    (await api.create(POOLS, pool, HERE)).ok  # noqa: B018
    await scaled.becomes(1)
    pod, memory = await scaled.rests()
    assert pod.startswith(f"virt-launcher-{POOL}-1-")
    assert memory.endswith("Mi") and int(memory[:-2]) > 1
    (await api.create(AUTOSCALERS, autoscaler(), HERE)).ok  # noqa: B018

    await scaled.tell(f"{POOL}-1", BUSY)
    await scaled.becomes(3)
    used = {row[0]: int(row[1][:-1]) for row in await scaled.top("pod", "-l", f"{labels.POOL}={POOL}")}
    assert used[pod] > AIM
    ((node, of_all, *_),) = await scaled.top("node")
    assert node == NAME and int(of_all[:-1]) > AIM

    await scaled.tell(f"{POOL}-1", IDLE)
    await scaled.becomes(1)
    status = (await api.get(AUTOSCALERS, POOL, HERE)).ok["status"]
    assert status["desiredReplicas"] == 1
    assert status["currentMetrics"][0]["resource"]["current"]["averageUtilization"] < UTILIZATION
