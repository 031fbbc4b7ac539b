"""`herder migrate|cancel|drain|undrain` with the installed program, on simulated nodes."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine

MIGRATION = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration"}
SLOW = {"apiVersion": "migrations.kubevirt.io/v1alpha1", "kind": "MigrationPolicy"}


@pytest.fixture
def herder(here: Kubectl, tmp_path: Path) -> Herder:
    """In the same namespace as kubectl."""
    return Herder(here.kubeconfig, tmp_path, here.namespace)


@pytest.fixture
def running(here: Kubectl) -> str:
    """A machine that runs, and the node that it runs on."""
    here.create(machine("web", "Always"))
    here("wait", "vm/web", "--for=condition=Ready", "--timeout=60s")
    return node_of(here)


def node_of(kubectl: Kubectl) -> str:
    return kubectl("get", "vmi", "web", "-o", "jsonpath={.status.nodeName}")


def other(node: str) -> str:
    return "node-2" if node == "node-1" else "node-1"


def slow(kubectl: Kubectl, bandwidth: str = "1Mi") -> None:
    """A copy that takes minutes, for this namespace alone."""
    selectors = {"namespaceSelector": {"kubernetes.io/metadata.name": kubectl.namespace}}
    spec = {"bandwidthPerMigration": bandwidth, "selectors": selectors}
    kubectl.create({**SLOW, "metadata": {"name": f"slow-{kubectl.namespace}"}, "spec": spec})


def test_a_guest_is_moved_and_the_way_there_is_shown(here: Kubectl, herder: Herder, running: str) -> None:
    lines = herder("migrate", "web", "--wait").splitlines()
    assert lines[0].startswith("virtualmachineinstancemigration.kubevirt.io/web-")
    assert lines[-1] == f"Succeeded to {other(running)}"
    here("wait", "vmi/web", f"--for=jsonpath={{.status.nodeName}}={other(running)}", "--timeout=60s")


def test_only_to_a_node_that_is_named(here: Kubectl, herder: Herder, running: str) -> None:
    said = herder.refused("migrate", "web", "--to", running, "--wait")
    assert said.startswith(
        f"herder: no node can take web, so no migration was made: AlreadyOnNode: addedNodeSelectorTerm names node {running}"
    )
    assert here("get", "vmim", "-o", "name") == ""
    assert herder("migrate", "web", "--to", other(running), "--wait").splitlines()[-1] == f"Succeeded to {other(running)}"
    assert "exclude each other" in herder.refused("migrate", "web", "--to", "a", "--selector", "b=c", code=2)


def test_only_to_nodes_with_labels(here: Kubectl, herder: Herder, running: str) -> None:
    assert "addedNodeSelectorTerm" in herder.refused("migrate", "web", "--selector", "no-such-label=yes", "--wait")
    assert node_of(here) == running
    assert here("get", "vmim", "-o", "name") == ""
    asked = {"vmiName": "web", "addedNodeSelectorTerm": {"matchExpressions": [{"key": "no-such-label", "operator": "Exists"}]}}
    here.create({**MIGRATION, "metadata": {"name": "by-kubectl"}, "spec": asked})
    here("wait", "vmim/by-kubectl", "--for=jsonpath={.status.phase}=Failed", "--timeout=60s")


def test_a_failure_is_said_once_with_its_reason(here: Kubectl, herder: Herder) -> None:
    broken = machine("web", "Always")
    broken["spec"]["template"]["metadata"] = {"annotations": {"simulated.herder.dev/fails-at": "migration"}}
    here.create(broken)
    here("wait", "vm/web", "--for=condition=Ready", "--timeout=60s")
    ended = herder.run("migrate", "web", "--wait")
    assert ended.code == 8
    name, reason = here("get", "vmim", "-o", "jsonpath={.items[0].metadata.name} {.items[0].status.reason}").split()
    assert ended.err.startswith(f"herder: migration {name} failed: {reason}: ")
    assert "Failed" not in ended.out and reason not in ended.out


def test_on_a_terminal_a_bar_grows_and_a_line_is_left(here: Kubectl, herder: Herder, running: str) -> None:
    slow(here, "200Mi")
    ours, theirs = pty.openpty()
    environment = {**herder.environment, "TERM": "xterm-256color", "COLUMNS": "120", "NO_COLOR": "1"}
    command = herder.command("migrate", "web", "--wait")
    waiting = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = _all_of(ours).decode()
    assert waiting.wait(60) == 0, written
    bars = [len(bar) for bar in re.findall("━+", written)]
    assert len(set(bars)) > 1 and bars == sorted(bars), written
    assert written.count(f"Succeeded to {other(running)}\r\n") == 1, written
    assert not re.search(r"\x1b\[[0-9;]*m", written), "without colours, as NO_COLOR asks"


def _all_of(terminal: int) -> bytes:
    """Until nobody writes there any more."""
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how Linux says so
            piece = b""
        if not piece:
            os.close(terminal)
            return b"".join(pieces)
        pieces.append(piece)


def test_a_migration_that_waits_says_what_for_and_goes_on_when_its_time_is_up(here: Kubectl, herder: Herder, running: str) -> None:
    slow(here)
    said = herder.refused("migrate", "web", "--timeout", "2s", code=9)
    name = here("get", "vmim", "-o", "jsonpath={.items[0].metadata.name}")
    assert said.startswith("herder: after 2 s it is not over yet: ")
    assert f"It goes on: `kubectl get vmim {name} -n {here.namespace} --watch` follows it" in said
    assert f"`herder cancel {name} -n {here.namespace}` ends it" in said
    assert here("get", "vmim", name, "-o", "jsonpath={.metadata.deletionTimestamp}") == ""
    assert "is gone" in herder("cancel", name, "--timeout", "1m")


def test_a_migration_is_cancelled_and_the_guest_stays(here: Kubectl, herder: Herder, running: str) -> None:
    slow(here)
    herder("migrate", "web")
    here("wait", "vmim", "--all", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    assert "is being cancelled" in herder("cancel", "web", "--wait")
    assert here("get", "vmim", "-o", "name") == ""
    assert node_of(here) == running
    assert "no migration of 'web' to cancel" in herder.refused("cancel", "web")


def test_what_does_not_run_is_not_moved(here: Kubectl, herder: Herder) -> None:
    here.create(machine("off"))
    here("wait", "vm/off", "--for=jsonpath={.status.printableStatus}=Stopped", "--timeout=20s")
    assert "VirtualMachine off is Stopped, so there is no guest to move" in herder.refused("migrate", "off")
    assert "only what runs can be moved" in herder.refused("migrate", "nobody")
