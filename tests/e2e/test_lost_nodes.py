"""Agents that hang, under `herder up`: their nodes are taken for lost, and no machine is started twice before they are fenced."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine
from tests.e2e.program import Up, until

# Renewals come every 10 s.
GRACE = ("--node-monitor-grace-period", "15")
PATIENCE = 90.0


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Up]:
    with Up(tmp_path, *GRACE, nodes=2) as running:
        yield running


def taints(kubectl: Kubectl, node: str) -> list[tuple[str, str]]:
    return [(one["key"], one["effect"]) for one in kubectl.json("get", "node", node)["spec"].get("taints", [])]


def shown(kubectl: Kubectl, what: str) -> str:
    return kubectl.run("get", what, "web", "-o", "jsonpath={.status.printableStatus}{.status.phase} {.status.nodeName}").stdout


def test_nodes_whose_agents_hang_are_not_ready_and_their_machines_stay_where_they_are(herd: Up, kubectl_program: Path) -> None:
    kubectl = Kubectl(kubectl_program, herd.kubeconfig, herd.data.parent)
    kubectl.create(machine("web", "Always"))
    until(lambda: shown(kubectl, "vmi").startswith("Running"), "the machine does not run", PATIENCE)
    uid = kubectl.json("get", "vmi", "web")["metadata"]["uid"]
    agents = herd.child("agents")
    os.kill(agents, signal.SIGSTOP)
    try:
        # All of them are away, so nobody is evicted.
        wanted = [("node.kubernetes.io/unreachable", "NoSchedule")]
        for node in ("node-1", "node-2"):
            until(lambda name=node: taints(kubectl, name) == wanted, f"{node} is not taken for lost", PATIENCE)
        assert "NotReady" in kubectl("get", "nodes")
        until(lambda: shown(kubectl, "vmi").startswith("Unknown"), "the machine is not Unknown", PATIENCE)
        pods = kubectl.json("get", "pods")["items"]
        assert [("deletionTimestamp" in one["metadata"]) for one in pods] == [False]
    finally:
        os.kill(agents, signal.SIGCONT)
    for node in ("node-1", "node-2"):
        until(lambda name=node: taints(kubectl, name) == [], f"{node} is not back", PATIENCE)
    assert "NotReady" not in kubectl("get", "nodes")
    until(lambda: shown(kubectl, "vmi").startswith("Running"), "the machine does not run any more", PATIENCE)
    assert kubectl.json("get", "vmi", "web")["metadata"]["uid"] == uid


def test_a_machine_of_a_node_that_is_cut_off_is_started_elsewhere_once_the_node_is_fenced(herd: Up, kubectl_program: Path) -> None:
    kubectl = Kubectl(kubectl_program, herd.kubeconfig, herd.data.parent)
    kubectl.create(machine("web", "Always"))
    until(lambda: shown(kubectl, "vmi").startswith("Running"), "the machine does not run", PATIENCE)
    found = kubectl.json("get", "vmi", "web")
    lost, uid = found["status"]["nodeName"], found["metadata"]["uid"]
    other = "node-1" if lost == "node-2" else "node-2"
    kubectl("annotate", "node", lost, "simulated.herder.dev/silent=true")
    wanted = [("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")]
    until(lambda: taints(kubectl, lost) == wanted, "the node is not emptied", PATIENCE)
    until(lambda: shown(kubectl, "vmi").startswith("Unknown"), "the machine is not Unknown", PATIENCE)
    kubectl("delete", "pod", found["status"]["launcherPodName"], "--wait=false")
    assert len(kubectl.json("get", "pods")["items"]) == 1
    kubectl("taint", "node", lost, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
    until(lambda: shown(kubectl, "vmi") == f"Running {other}", "the machine does not run elsewhere", PATIENCE)
    assert kubectl.json("get", "vmi", "web")["metadata"]["uid"] != uid
