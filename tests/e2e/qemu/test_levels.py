"""Nodes with real QEMU say what QEMU says, and their level follows from that."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from herder.api import labels
from herder.nodes.node import cpu_labels
from herder.nodes.runtimes.qemu.facts import Facts, describe
from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.program import Up, until
from tests.e2e.qemu.test_up import PATIENCE, machine
from tests.engines.embedded import find_program


class Pair:
    def __init__(self, up: Up, kubectl: Kubectl) -> None:
        self.up = up
        self.kubectl = kubectl

    def labels(self) -> dict[str, dict[str, str]]:
        return {one["metadata"]["name"]: one["metadata"]["labels"] for one in self.kubectl.json("get", "nodes")["items"]}

    def levels(self) -> dict[str, str | None]:
        return {name: found.get(labels.MIGRATABILITY_LEVEL) for name, found in self.labels().items()}

    def explain(self, *asked: str) -> str:
        command = [str(find_program()), "explain", *asked, "--kubeconfig", str(self.up.kubeconfig)]
        return subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=60, check=True).stdout


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, qemu: str, guest: Path, kubectl_program: Path) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    with Up(folder, "--runtime", "qemu", nodes=2) as up:
        kubectl = Kubectl(kubectl_program, up.kubeconfig, folder)
        content = base64.b64encode(guest.read_bytes()).decode()
        kubectl.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kernel"}, "binaryData": {"guest.elf": content}}
        )
        yield Pair(up, kubectl)
        # Guests outlive the program.
        kubectl("delete", "vm", "--all", "--wait=true")
        until(lambda: not kubectl.json("get", "pods")["items"], "its guests are gone", PATIENCE)


def test_nodes_have_the_labels_of_their_qemu_and_a_level_from_them(pair: Pair, facts: Facts) -> None:
    until(lambda: pair.levels() == {"node-1": "50", "node-2": "50"}, "two equal nodes take each other's guests", PATIENCE)
    real = cpu_labels(describe(facts).cpu)
    assert len(real) > 20
    for found in pair.labels().values():
        assert {name: value for name, value in found.items() if name.startswith(labels.CPU_LABELS)} == real


def test_a_feature_that_one_node_lacks_keeps_guests_of_the_other_away(pair: Pair, facts: Facts) -> None:
    feature = labels.CPU_FEATURE + facts.host_model_features[0]
    pair.kubectl("label", "node", "node-2", f"{feature}-")
    try:
        until(lambda: pair.levels() == {"node-1": "0", "node-2": "50"}, "node-2 takes no guest of node-1 any more", PATIENCE)
        assert facts.host_model_features[0] in pair.explain("migratability", "node-1").splitlines()[-1].split()
    finally:
        pair.kubectl("label", "node", "node-2", f"{feature}=true")
    until(lambda: pair.levels() == {"node-1": "50", "node-2": "50"}, "both are as they were", PATIENCE)


def test_a_real_guest_is_recorded_with_the_processor_that_its_node_counts_with(pair: Pair, facts: Facts) -> None:
    pair.kubectl.create(machine("web", terminationGracePeriodSeconds=2))
    until(lambda: pair.kubectl.run("get", "vmi", "web", "-o", "jsonpath={.status.phase}").stdout == "Running", "it runs", PATIENCE)
    cpu = pair.kubectl.json("get", "vmi", "web")["status"]["cpu"]
    assert cpu["model"] == facts.host_model
    assert sorted(one["name"] for one in cpu["features"]) == sorted(facts.host_model_features)
    assert "1 of 1 other nodes would take it." in pair.explain("migratability", "vm/web")


def test_a_real_guest_moves_only_where_its_processor_is_and_is_told_what_is_missing(
    pair: Pair, facts: Facts, migrations: None, tmp_path: Path
) -> None:
    herder = Herder(pair.up.kubeconfig, tmp_path, "default")
    pair.kubectl.create(machine("free", terminationGracePeriodSeconds=2))
    pair.kubectl("wait", "vm/free", "--for=condition=Ready", "--timeout=30s")
    here = pair.kubectl("get", "vmi", "free", "-o", "jsonpath={.status.nodeName}")
    there = ({"node-1", "node-2"} - {here}).pop()
    name = facts.host_model_features[0]
    pair.kubectl("label", "node", there, f"{labels.CPU_FEATURE}{name}-")
    try:
        assert f"; {there} lacks {name}. " in herder.refused("migrate", "free", "--wait")
        pods = pair.kubectl("get", "pods", "-l", "kubevirt.io/vm=free", "-o", "name").split()
        assert len(pods) == 1, "no pod is made for a move that cannot be"
    finally:
        pair.kubectl("label", "node", there, f"{labels.CPU_FEATURE}{name}=true")
    assert herder("migrate", "free", "--wait").splitlines()[-1] == f"Succeeded to {there}"
