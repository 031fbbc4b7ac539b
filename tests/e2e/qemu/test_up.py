"""`herder up` with real guests, from kubectl to the guest's own words, and what is left when things end."""

from __future__ import annotations

import base64
import datetime
import itertools
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herder.kube.client import Client
from herder.kube.errors import Forbidden
from herder.kube.resources import NODES, SECRETS, Key
from herder.kube.unix import SocketTransport
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, is_running, until
from tests.e2e.qemu.node import Document
from tests.engines.embedded import find_program
from tests.engines.images import images_of

PATIENCE = 60.0
EXAMPLES = Path(__file__).parents[3] / "examples"


def machine(name: str, settings: str = "rate=10", **spec: Any) -> Document:
    boot = {"volume": {"name": "kernel", "kernelPath": "guest.elf"}, "kernelArgs": settings}
    domain = {"memory": {"guest": "64Mi"}, "firmware": {"kernelBoot": boot}, "devices": {}}
    volumes = [{"name": "kernel", "configMap": {"name": "kernel"}}]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": domain, "volumes": volumes, **spec}}},
    }


class Herd:
    """Its own program, as tests here kill and stop it."""

    def __init__(self, up: Up, kubectl: Kubectl) -> None:
        self.up = up
        self.kubectl = kubectl

    def phase(self, name: str) -> str:
        return self.kubectl.run("get", "vmi", name, "-o", "jsonpath={.status.phase}").stdout

    def runs(self, name: str) -> int:
        """The process of its guest, once it is Running and counts."""
        until(
            lambda: self.phase(name) == "Running",
            f"{name} does not run: {self.kubectl.run('get', 'vm,vmi,pod', '-o', 'yaml').stdout}",
            PATIENCE,
        )
        (log,) = self.up.data.glob("nodes/*/guests/*/console.log")
        until(lambda: "tick 2 " in log.read_text(), "it does not count", PATIENCE)
        (pid,) = self.processes()
        return pid

    def processes(self) -> list[int]:
        """Every QEMU of this data directory."""
        found: list[int] = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(folder / "cwd").startswith(str(self.up.data.resolve())):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found


@pytest.fixture(scope="module")
def herd(tmp_path_factory: pytest.TempPathFactory, qemu: str, guest: Path, kubectl_program: Path) -> Iterator[Herd]:
    folder = tmp_path_factory.mktemp("herd")
    with Up(folder, "--runtime", "qemu", "--allow-local-imports", nodes=2) as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, folder)
        content = base64.b64encode(guest.read_bytes()).decode()
        kubectl.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}}
        )
        one = Herd(up, kubectl)
        yield one
    for pid in one.processes():
        os.kill(pid, signal.SIGKILL)


async def test_each_node_is_that_node_to_the_engine_and_no_other(herd: Herd) -> None:
    socket = herd.up.data / "agent-node-2.sock"
    assert socket.stat().st_mode & 0o777 == 0o600
    async with Client(SocketTransport(socket, "test"), "test") as agent:
        assert (await agent.get(NODES, Key("", "node-2"))).name == "node-2"
        for refused in (agent.list(NODES), agent.find(NODES, Key("", "node-1")), agent.list(SECRETS)):
            with pytest.raises(Forbidden):
                await refused


def test_nodes_say_that_they_run_qemu_and_on_what(herd: Herd) -> None:
    nodes = herd.kubectl.json("get", "nodes")["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2"]
    for node in nodes:
        labels = node["metadata"]["labels"]
        assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("qemu://")
        assert labels["herder.dev/runtime"] == "qemu"
        assert labels["herder.dev/storage"] == "local"
        assert "cpu-model.node.kubevirt.io/Nehalem" in labels
        assert any(label.startswith("host-model-cpu.node.kubevirt.io/") for label in labels)


def test_a_plain_pod_waits_for_another_node_and_is_made_once(herd: Herd) -> None:
    """Here it could only fail, and whoever keeps it would make the next one, without end."""
    herd.kubectl("create", "deployment", "nginx", "--image=nginx")

    def scheduled() -> str:
        path = "jsonpath={.items[0].status.conditions[?(@.type=='PodScheduled')].message}"
        return herd.kubectl.run("get", "pods", "-l", "app=nginx", "-o", path).stdout

    until(lambda: "node(s) had untolerated taint" in scheduled(), "nobody said why it waits", PATIENCE)
    assert "2 node(s) had untolerated taint(s)" in scheduled()
    (pod,) = herd.kubectl.json("get", "pods", "-l", "app=nginx")["items"]
    assert (pod["status"]["phase"], "nodeName" in pod["spec"]) == ("Pending", False)
    herd.kubectl("delete", "deployment", "nginx", "--timeout=60s")


def test_pods_that_are_refused_at_once_are_made_ever_more_rarely(herd: Herd) -> None:
    """They tolerate what should keep them away."""
    labels = {"app": "stubborn"}
    spec = {"containers": [{"name": "main", "image": "nginx"}], "tolerations": [{"operator": "Exists"}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    wanted = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    herd.kubectl.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "stubborn"}, "spec": wanted})

    def refused() -> list[datetime.datetime]:
        pods = herd.kubectl.json("get", "pods", "-l", "app=stubborn")["items"]
        failed = [pod for pod in pods if pod["status"].get("reason") == "Unsupported"]
        return sorted(datetime.datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in failed)

    until(lambda: len(refused()) >= 4, "it gave up", PATIENCE)
    gaps = [(later - before).total_seconds() for before, later in itertools.pairwise(refused())]
    assert all(gap >= least for gap, least in zip(gaps, (1, 2, 4), strict=False)), gaps
    herd.kubectl("delete", "replicaset", "stubborn", "--timeout=60s")


def test_a_machine_lives_through_the_death_of_its_agent_and_goes_with_its_object(herd: Herd) -> None:
    herd.kubectl.create(machine("web"))
    pid = herd.runs("web")
    status = herd.kubectl.json("get", "vmi", "web")["status"]
    assert status["runtime"] == "qemu"
    assert status["machineType"].startswith("pc-q35-")
    os.kill(herd.up.child("agents"), signal.SIGKILL)
    until(lambda: "agents" in herd.up.children(), "the agents did not come back", PATIENCE)
    herd.kubectl("annotate", "vmi", "web", "herder.dev/paused=true")
    until(lambda: "Paused" in herd.kubectl("get", "vmi", "web", "-o", "yaml"), "it was not paused", PATIENCE)
    assert herd.runs("web") == pid
    herd.kubectl("annotate", "--overwrite", "vmi", "web", "herder.dev/paused=false")
    herd.kubectl("delete", "vm", "web", "--timeout=60s")
    until(lambda: not is_running(pid), "its QEMU is still there", PATIENCE)
    until(lambda: not list(herd.up.data.glob("nodes/*/guests/*")), "its files are still there", PATIENCE)


def test_what_cannot_be_run_is_said_by_name(herd: Herd) -> None:
    template = machine("odd")["spec"]["template"]["spec"]
    template["domain"]["features"] = {"smm": {}}
    instance = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "odd"}, "spec": template}
    herd.kubectl.create(instance)
    until(lambda: herd.phase("odd") == "Failed", "it was not refused", PATIENCE)
    assert "domain.features.smm: system management mode is not offered" in herd.kubectl("get", "vmi,pod", "-o", "yaml")
    assert herd.processes() == []


def test_the_machine_of_the_tour_counts_and_its_console_is_read_from_outside(herd: Herd, guest: Path) -> None:
    herd.kubectl("create", "configmap", "counter-kernel", f"--from-file=guest.elf={guest}")
    herd.kubectl("apply", "-f", str(EXAMPLES / "counter.yaml"))
    herd.runs("counter")
    told = herd.kubectl("logs", "-l", "kubevirt.io/vm=counter", "--tail=-1")
    assert "settings rate=10 dirty=8M/s working-set=8M" in told
    assert "errors=0" in told
    herd.kubectl("delete", "vm", "counter", "--timeout=60s")
    until(lambda: herd.processes() == [], "its QEMU is still there", PATIENCE)


@pytest.fixture
def server(guest: Path) -> Iterator[str]:
    """Serves the guest's kernel as an image, as any web server would."""
    with images_of(guest.parent) as url:
        yield f"{url}/{guest.name}"


def test_a_machine_with_an_imported_disk_runs_and_takes_its_disk_with_it(herd: Herd, server: str) -> None:
    imported = machine("imported")
    size = {"resources": {"requests": {"storage": "1Mi"}}}
    template = {"metadata": {"name": "kernel-disk"}, "spec": {"source": {"http": {"url": server}}, "storage": size}}
    imported["spec"]["dataVolumeTemplates"] = [template]
    inside = imported["spec"]["template"]["spec"]
    inside["volumes"] = [{"name": "kernel", "dataVolume": {"name": "kernel-disk"}}]
    inside["domain"]["firmware"]["kernelBoot"]["volume"] = {"name": "kernel"}
    herd.kubectl.create(imported)
    herd.runs("imported")
    assert herd.kubectl.json("get", "dv", "kernel-disk")["status"]["phase"] == "Succeeded"
    (disk,) = herd.up.data.glob("volumes/*/disk.img")
    herd.kubectl("delete", "vm", "imported", "--timeout=60s")
    until(lambda: not disk.exists(), "its disk is still there", PATIENCE)
    until(lambda: not herd.kubectl.json("get", "dv,pvc,pv")["items"], "something of it is left", PATIENCE)


def down(data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(find_program()), "down", "--data", str(data), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def test_no_guest_outlives_herder_and_machines_run_again_with_it(herd: Herd, tmp_path: Path) -> None:
    """The last one: it stops the program."""
    herd.kubectl.create(machine("web"))
    pid = herd.runs("web")
    assert herd.up.end(signal.SIGINT) == 0
    assert not is_running(pid)
    assert herd.processes() == []
    with Up(tmp_path, "--runtime", "qemu", data=herd.up.data, port=herd.up.port, nodes=2) as again:
        until(lambda: herd.processes() not in ([], [pid]), "the machine was not started again", PATIENCE)
        ended = down(herd.up.data)
        assert (ended.returncode, ended.stdout) == (0, f"herder has stopped; what is stored stays in {herd.up.data}\n")
        assert (herd.processes(), is_running(again.pid)) == ([], False)


def test_down_ends_what_a_killed_herder_left_behind(herd: Herd, tmp_path: Path) -> None:
    with Up(tmp_path, "--runtime", "qemu", data=herd.up.data, port=herd.up.port, nodes=2) as killed:
        until(herd.processes, "the machine was not started again", PATIENCE)
        killed.end(signal.SIGKILL)
    ended = down(herd.up.data)
    assert "1 guest ran on without it and was shut down\n" in ended.stdout
    assert herd.processes() == []
    again = down(herd.up.data)
    assert (again.returncode, again.stdout) == (0, f"no herder runs in {herd.up.data}\n")
    never = down(tmp_path)
    assert (never.returncode != 0, "no herder ever ran here" in never.stderr) == (True, True)
