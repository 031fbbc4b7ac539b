"""The Node of real guests without disks is deleted under them: nothing but their agent keeps a second copy from being started, and
at no instant there is one."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, is_running, until
from tests.e2e.qemu.sites import ADDRESSES, Machine, Site, counting
from tests.e2e.qemu.test_up import PATIENCE, Herd, machine
from tests.engines.embedded import find_program

NAMES = ("one", "two", "three")


class Witness:
    """Looks again and again whose QEMUs there are, on the machine itself."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._over = threading.Event()
        self.most: Counter[str] = Counter()
        self.looks = 0

    def running(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for folder in [guest for storage in self._folders for guest in storage.glob("nodes/*/guests/*")]:
            with suppress(OSError, ValueError, KeyError):
                name = json.loads((folder / "guest.json").read_bytes())["definition"]["instance"]["name"]
                found[name] += is_running(json.loads((folder / "process.json").read_bytes())["pid"])
        return found

    def _look(self) -> None:
        while not self._over.wait(0.002):
            self.most |= self.running()
            self.looks += 1

    @contextmanager
    def looking(self) -> Generator[None]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()


def uid(kubectl: Kubectl, name: str) -> str:
    """Of the instance that runs."""
    told = kubectl.run("get", "vmi", name, "-o", "jsonpath={.status.phase} {.metadata.uid}").stdout
    return told.removeprefix("Running ") if told.startswith("Running ") else ""


def test_no_guest_runs_twice_when_its_node_is_deleted(tmp_path: Path, qemu: str, guest: Path, kubectl_program: Path) -> None:
    with Up(tmp_path, "--runtime", "qemu", nodes=2) as up:
        herd = Herd(up, Kubectl(kubectl_program, up.kubeconfig, tmp_path))
        content = base64.b64encode(guest.read_bytes()).decode()
        kernel = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}}
        herd.kubectl.create(kernel)
        for name in NAMES:
            herd.kubectl.create(machine(name))
        before = {name: until(lambda name=name: uid(herd.kubectl, name), f"{name} does not run", PATIENCE) for name in NAMES}
        nodes = {name: herd.kubectl("get", "node", name, "-o", "jsonpath={.metadata.uid}") for name in ("node-1", "node-2")}
        witness = Witness(up.data)
        with witness.looking():
            # Both, one after the other: wherever a guest is, its node is deleted under it.
            for node in nodes:
                herd.kubectl("delete", "node", node, "--timeout=60s")
                until(lambda node=node: again(herd, node, nodes), f"{node} is not registered anew", PATIENCE)
            for name in NAMES:
                until(lambda name=name: uid(herd.kubectl, name) not in ("", before[name]), f"{name} is not started again", PATIENCE)
        assert witness.looks > 10
        assert witness.most == Counter(NAMES)
        herd.kubectl("delete", "vm", "--all", "--timeout=60s")


def again(herd: Herd, node: str, nodes: dict[str, str]) -> bool:
    return herd.kubectl.run("get", "node", node, "-o", "jsonpath={.metadata.uid}").stdout not in ("", nodes[node])


@pytest.fixture
def site(tmp_path: Path, qemu: str, guest: Path, kubectl_program: Path) -> Iterator[Site]:
    """Two agents, each a process of its own."""
    with Up(tmp_path, nodes=0) as up:
        machines: dict[str, Machine] = {}
        for name in ADDRESSES:
            command = [str(find_program()), "user", "add", f"system:node:{name}", "--group", "system:nodes", "--data", str(up.data)]
            subprocess.run(command, check=True, capture_output=True, timeout=60, cwd=tmp_path)
            machines[name] = Machine(tmp_path, name, tmp_path / f"{name}.kubeconfig")
        kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path, "default")
        with counting(machines, kubectl, Herder(up.kubeconfig, tmp_path, "default"), guest) as made:
            yield made


def test_an_agent_that_takes_its_time_keeps_its_guest_from_being_started_elsewhere(site: Site) -> None:
    """It stands still while its Node is deleted: everybody else goes on meanwhile."""
    lost = site.where()
    other = next(one for one in site.machines.values() if one is not lost)
    lost.counts()
    witness = Witness(*(one.storage for one in site.machines.values()))
    herd = site.kubectl
    before = uid(herd, "counter")
    with witness.looking():
        lost.agent.send(signal.SIGSTOP)
        try:
            herd("delete", "node", lost.name, "--wait=false")
            # Started after it, and there: so would have been the guest that is not to be started.
            later = machine("later")
            later["spec"]["template"]["spec"]["volumes"] = [{"name": "kernel", "configMap": {"name": "counter-kernel"}}]
            herd.create(later)
            until(
                lambda: herd("get", "vmi", "later", "-o", "jsonpath={.status.nodeName}") == other.name, "it has no place", PATIENCE
            )
            until(lambda: herd("get", "vmi", "later", "-o", "jsonpath={.status.phase}") == "Running", "it does not run", PATIENCE)
            assert herd("get", "vmi", "counter", "-o", "jsonpath={.status.nodeName}") == lost.name
            assert "deletionTimestamp" in herd("get", "node", lost.name, "-o", "yaml")
        finally:
            lost.agent.send(signal.SIGCONT)
        until(lambda: uid(herd, "counter") not in ("", before), "it is not started again", PATIENCE)
        until(lambda: witness.running() == Counter(("counter", "later")), "they do not run", PATIENCE)
    assert witness.most == Counter(("counter", "later"))
    herd("delete", "vm", "later", "--timeout=60s")
