"""A policy that allows post-copy on nodes whose kernel forbids userfaultfd to QEMU's user: `herder up`, kubectl, a real guest."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import EngineMissing
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, until
from tests.e2e.qemu.test_post_copy import is_forbidden
from tests.e2e.qemu.test_up import EXAMPLES, PATIENCE, Herd

MIGRATION = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstanceMigration",
    "metadata": {"name": "move"},
    "spec": {"vmiName": "counter"},
}
SETTINGS = '{"spec": {"configuration": {"migrations": {"allowPostCopy": true}}}}'


@pytest.fixture(scope="module")
def herd(tmp_path_factory: pytest.TempPathFactory, qemu: str, guest: Path, kubectl_program: Path) -> Iterator[Herd]:
    if not is_forbidden() or os.geteuid() != 0:
        raise EngineMissing("this kernel lets everybody have userfaultfd, or these tests are not run by root")
    folder = tmp_path_factory.mktemp("herd")
    with Up(folder, "--runtime", "qemu", nodes=2) as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, folder)
        kubectl("patch", "kubevirt", "kubevirt", "--namespace", "kubevirt", "--type", "merge", "--patch", SETTINGS)
        kubectl("create", "configmap", "counter-kernel", f"--from-file=guest.elf={guest}")
        one = Herd(up, kubectl)
        yield one
    for pid in one.processes():
        os.kill(pid, signal.SIGKILL)


def test_nodes_say_that_they_cannot_and_what_would_help(herd: Herd) -> None:
    for node in herd.kubectl.json("get", "nodes")["items"]:
        assert node["metadata"]["labels"]["herder.dev/post-copy"] == "false"
        assert "sysctl vm.unprivileged_userfaultfd=1" in node["metadata"]["annotations"]["herder.dev/no-post-copy"]


@pytest.mark.usefixtures("migrations")
def test_a_migration_goes_on_without_and_says_so_and_the_machine_can_be_deleted(herd: Herd) -> None:
    herd.kubectl("apply", "-f", str(EXAMPLES / "counter.yaml"))
    herd.runs("counter")
    herd.kubectl.create(MIGRATION)

    def phase() -> str:
        return herd.kubectl.run("get", "vmim", "move", "-o", "jsonpath={.status.phase}").stdout

    until(lambda: phase() in ("Succeeded", "Failed"), f"it hangs in {phase()}", PATIENCE)
    status = herd.kubectl.json("get", "vmim", "move")["status"]
    assert status["phase"] == "Succeeded", status
    assert "vm.unprivileged_userfaultfd=1" in status["migrationState"]["postCopyUnavailable"]

    def told() -> bool:
        events = json.loads(herd.kubectl("get", "events", "-o", "json"))["items"]
        return any(one["reason"] == "PostCopyNotAvailable" and "sysctl" in one["message"] for one in events)

    until(told, "nobody was told", PATIENCE)
    herd.kubectl("delete", "vm", "counter", "--timeout=60s")
    until(lambda: herd.processes() == [], "a QEMU is left", PATIENCE)
    assert "Traceback" not in herd.up.err
