"""A node is lost half-way, with all that runs there, while it saves the memory of a real guest or goes on from it: the machine is
suspended, or boots elsewhere and says why, and at no instant two copies of it run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, until
from tests.e2e.qemu.sites import ADDRESSES, Machine
from tests.e2e.qemu.test_deleted_nodes import Witness
from tests.e2e.qemu.test_up import machine
from tests.engines.embedded import find_program

pytestmark = pytest.mark.usefixtures("migrations")
PATIENCE = 120.0
# Long enough at it to be met half-way.
LARGE = "rate=20 dirty=2M/s working-set=200M"
GONE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


class Pair:
    """Two agents that see the same storage, each a process of its own."""

    def __init__(self, machines: dict[str, Machine], kubectl: Kubectl, storage: Path) -> None:
        self.machines, self.kubectl, self.storage = machines, kubectl, storage

    def suspend(self, wanted: bool) -> None:
        self.kubectl("patch", "vm", "web", "--type=merge", "-p", json.dumps({"spec": {"suspended": wanted or None}}))

    def shows(self, word: str) -> None:
        look = ("get", "vm", "web", "-o", "jsonpath={.status.printableStatus}")
        until(lambda: self.kubectl(*look) == word, f"it is not {word}: {self.kubectl('get', 'vm,vmi,pod', '-o', 'wide')}", PATIENCE)

    def placed(self) -> Machine:
        """Where its pod is bound to."""
        look = ("get", "pod", "-l", "kubevirt.io/vm=web", "-o", "jsonpath={.items[*].spec.nodeName}")
        return self.machines[until(lambda: self.kubectl(*look), "it has no place", PATIENCE)]

    def counts_at(self) -> Machine:
        self.shows("Running")
        found = self.placed()
        logs = lambda: self.storage.glob(f"nodes/{found.name}/guests/*/console.log")  # noqa: E731
        until(lambda: any("tick " in log.read_text() for log in logs()), "it does not count", PATIENCE)
        return found

    def half_way(self, file: str) -> None:
        """Once the file is there, or nobody waits for it any more."""
        over = ("get", "vm", "web", "-o", "jsonpath={.status.printableStatus}")
        until(
            lambda: list(self.storage.rglob(file)) or self.kubectl(*over) in ("Suspended", "Running"), f"no {file}", PATIENCE, 0.001
        )

    def lose(self, lost: Machine) -> None:
        """As a machine that loses its power, and somebody who knows that it did."""
        lost.agent.send(signal.SIGKILL)
        for known in self.storage.glob(f"nodes/{lost.name}/guests/*/process.json"):
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(json.loads(known.read_text())["pid"], signal.SIGKILL)
        self.kubectl("taint", "node", lost.name, GONE)

    def events(self) -> str:
        return self.kubectl("get", "events", "-o", "jsonpath={range .items[*]}{.reason}: {.message}{'\\n'}{end}")


@pytest.fixture
def pair(tmp_path: Path, qemu: str, guest: Path, kubectl_program: Path) -> Iterator[Pair]:
    storage, machines = tmp_path / "shared", dict[str, Machine]()
    with Up(tmp_path, nodes=0) as up:
        try:
            for name in ADDRESSES:
                command = [str(find_program()), "user", "add", f"system:node:{name}", "--group", "system:nodes"]
                subprocess.run([*command, "--data", str(up.data)], check=True, capture_output=True, timeout=60, cwd=tmp_path)
                config = tmp_path / f"{name}.kubeconfig"
                machines[name] = Machine(tmp_path, name, config, "--storage-domain", "shared", storage=storage)
            kubectl = Kubectl(kubectl_program, up.kubeconfig, tmp_path, "default")
            for one in machines.values():
                until(lambda one=one: "is registered" in one.said, f"{one.name} does not come", PATIENCE)
            kubectl("create", "configmap", "kernel", f"--from-file=guest.elf={guest}")
            wanted = machine("web", LARGE, terminationGracePeriodSeconds=5)
            wanted["spec"]["template"]["spec"]["domain"]["memory"] = {"guest": "256Mi"}
            kubectl.create(wanted)
            yield Pair(machines, kubectl, storage)
            kubectl("delete", "vm", "web", "--timeout=60s")
        finally:
            for one in machines.values():
                one.agent.send(signal.SIGTERM)
                one.end_guests()


def test_lost_while_it_saves_it_is_suspended_without_its_memory_and_boots_elsewhere(pair: Pair) -> None:
    lost, witness = pair.counts_at(), Witness(pair.storage)
    with witness.looking():
        pair.suspend(True)
        pair.half_way("memory.part")
        pair.lose(lost)
        pair.shows("Suspended")
        look = ("get", "vm", "web", "-o", "jsonpath={.status.conditions[?(@.type=='Suspended')].reason}")
        said = until(lambda: (one := pair.kubectl(*look)) != "SavingMemory" and one, "it does not say what is saved", PATIENCE)
        assert said in ("NothingSaved", "MemorySaved")
        pair.suspend(False)
        assert pair.counts_at() is not lost
    assert said == "MemorySaved" or "it boots from its disks when it is resumed" in pair.events()
    assert witness.most["web"] == 1 and witness.looks > 10


def test_lost_while_it_goes_on_from_its_memory_it_boots_elsewhere_and_says_why(pair: Pair) -> None:
    pair.counts_at()
    pair.suspend(True)
    pair.shows("Suspended")
    witness = Witness(pair.storage)
    with witness.looking():
        pair.suspend(False)
        lost = pair.placed()
        pair.half_way("memory.used")
        pair.lose(lost)
        until(lambda: pair.placed() is not lost, "it is not started elsewhere", PATIENCE)
        assert pair.counts_at() is not lost
    assert "the memory may have been used" in pair.events() or "Resumed: it goes on" in pair.events()
    assert not list(pair.storage.rglob("memory")), "nobody may ever go on from it"
    assert witness.most["web"] == 1 and witness.looks > 10
