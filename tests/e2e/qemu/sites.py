"""Two agents that share nothing but their cluster, as on two machines: storage, address and identity of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.behaviour.candidates import Candidate
from tests.e2e.guest.machine import assert_unbroken, ticks_of
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import until
from tests.e2e.qemu.test_up import EXAMPLES
from tests.engines.embedded import find_program

PATIENCE = 120.0
# The way to the cluster says 127.0.0.1 of both.
ADDRESSES = {"left": "127.0.0.2", "right": "127.0.0.3"}


class Machine:
    def __init__(self, folder: Path, name: str, kubeconfig: Path, *options: str, storage: Path | None = None) -> None:
        """`storage`: a folder that others see, too."""
        self.name = name
        self.storage = storage or folder / name / "storage"
        self.storage.mkdir(parents=True, exist_ok=storage is not None)
        self._log = folder / f"{name}.log"
        command = [str(find_program()), "node", "--kubeconfig", str(kubeconfig), "--name", name, "--runtime", "qemu"]
        self.agent = Candidate([*command, "--storage", str(self.storage), "--address", ADDRESSES[name], *options], self._log)

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def place(self) -> tuple[str, int]:
        """Where other agents come to."""
        return ADDRESSES[self.name], int((self.storage / "migration" / self.name / "port").read_text())

    def log(self) -> Path:
        (found,) = self.storage.glob("nodes/*/guests/*/console.log")
        return found

    def guests(self) -> list[Path]:
        return list(self.storage.glob("nodes/*/guests/*"))

    def end_guests(self) -> None:
        """Those of a test that failed: they outlive their agent."""
        for folder in self.guests():
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(json.loads((folder / "process.json").read_text())["pid"], signal.SIGKILL)

    def counts(self) -> None:
        until(lambda: len(ticks_of(self.log().read_text())) > 5, f"it does not count on {self.name}", PATIENCE)

    def sockets(self) -> list[Path]:
        """Over which guests would move within one machine."""
        return [path for name in ("agent.socket", "migration.socket") for path in self.storage.rglob(name)]


class Site:
    """A machine that counts, on one of the two."""

    def __init__(self, machines: dict[str, Machine], kubectl: Kubectl, herder: Herder) -> None:
        self.machines = machines
        self.kubectl = kubectl
        self.herder = herder

    def where(self) -> Machine:
        return self.machines[self.kubectl("get", "vmi", "counter", "-o", "jsonpath={.status.nodeName}")]

    def move(self) -> str:
        """To the other one; what the guest said where it was, to the last letter."""
        source = self.where()
        source.counts()
        with source.log().open() as log:
            told = self.herder.run("migrate", "counter", "--wait")
            assert told.code == 0, told.out + told.err + "".join(machine.said for machine in self.machines.values())
            heard = log.read()
        target = self.where()
        assert target is not source
        state = self.kubectl("get", "vmi", "counter", "-o", "jsonpath={.status.migrationState.targetNodeAddress}")
        assert state == "tls:{}:{}".format(*target.place)
        target.counts()
        return heard

    def check_whole(self, heard: str) -> None:
        """With what it says where it is now; and nothing of it went another way than over the network."""
        last = self.where().log().read_text()
        assert_unbroken(heard + last[: last.rfind("\n") + 1])
        assert not [path for machine in self.machines.values() for path in machine.sockets()]


def says_back(kubectl: Kubectl, pod: str) -> bool:
    """Whether the guest answers to what is typed on its console."""
    command = kubectl.command("attach", "-i", pod)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=kubectl.environment, text=True) as attached:
        assert attached.stdin is not None and attached.stdout is not None
        attached.stdin.write("hello\n")
        attached.stdin.flush()
        answered = any("you said: hello" in line for line in attached.stdout)
        attached.kill()
    return answered


@contextmanager
def counting(machines: dict[str, Machine], kubectl: Kubectl, herder: Herder, guest: Path) -> Generator[Site]:
    try:
        for machine in machines.values():
            until(lambda machine=machine: "is registered" in machine.said, f"{machine.name} does not come", PATIENCE)
        kubectl("create", "configmap", "counter-kernel", f"--from-file=guest.elf={guest}")
        kubectl("apply", "-f", str(EXAMPLES / "counter.yaml"))
        until(lambda: "Running" in kubectl("get", "vm", "counter"), "it does not run", PATIENCE)
        yield Site(machines, kubectl, herder)
        kubectl("delete", "vm", "counter", "--timeout=60s")
        for machine in machines.values():
            until(lambda machine=machine: not machine.guests(), f"a guest stays on {machine.name}", PATIENCE)
    finally:
        for machine in machines.values():
            machine.agent.close()
            machine.end_guests()
