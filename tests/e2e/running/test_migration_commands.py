"""`herder migrate|cancel|drain|undrain` with the installed program, on simulated nodes."""

from pathlib import Path

import pytest

from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine

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


def slow(kubectl: Kubectl) -> None:
    """A copy that takes a minute, for this namespace alone."""
    selectors = {"namespaceSelector": {"kubernetes.io/metadata.name": kubectl.namespace}}
    spec = {"bandwidthPerMigration": "1Mi", "selectors": selectors}
    kubectl.create({**SLOW, "metadata": {"name": f"slow-{kubectl.namespace}"}, "spec": spec})


def test_a_guest_is_moved_and_the_way_there_is_shown(here: Kubectl, herder: Herder, running: str) -> None:
    lines = herder("migrate", "web", "--wait").splitlines()
    assert lines[0].startswith("virtualmachineinstancemigration.kubevirt.io/web-")
    assert lines[-1] == f"Succeeded to {other(running)}"
    here("wait", "vmi/web", f"--for=jsonpath={{.status.nodeName}}={other(running)}", "--timeout=60s")


def test_only_to_a_node_that_is_named(here: Kubectl, herder: Herder, running: str) -> None:
    assert running in herder.refused("migrate", "web", "--to", running, "--wait")
    assert herder("migrate", "web", "--to", other(running), "--wait").splitlines()[-1] == f"Succeeded to {other(running)}"
    assert "exclude each other" in herder.refused("migrate", "web", "--to", "a", "--selector", "b=c", code=2)


def test_only_to_nodes_with_labels(here: Kubectl, herder: Herder, running: str) -> None:
    assert "addedNodeSelectorTerm" in herder.refused("migrate", "web", "--selector", "no-such-label=yes", "--wait")
    assert node_of(here) == running


def test_a_migration_is_cancelled_and_the_guest_stays(here: Kubectl, herder: Herder, running: str) -> None:
    slow(here)
    herder("migrate", "web")
    here("wait", "vmim", "--all", "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    assert "is being cancelled" in herder("cancel", "web", "--wait")
    assert here("get", "vmim", "-o", "name") == ""
    assert node_of(here) == running
    assert "no migration of 'web' to cancel" in herder.refused("cancel", "web")


def test_what_does_not_run_is_not_moved(herder: Herder) -> None:
    assert "only what runs can be moved" in herder.refused("migrate", "nobody")
