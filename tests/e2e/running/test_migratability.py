"""`herder explain migratability` and `herder explain baseline` beside a cluster that runs."""

import os
import subprocess

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine
from tests.e2e.program import Up, until
from tests.engines.embedded import find_program

LEVEL = r"{.items[*].metadata.labels.kubevirt/host-model-migratability-level}"


def explain(herd: Up, here: Kubectl, *asked: str) -> "subprocess.CompletedProcess[str]":
    command = [str(find_program()), "explain", *asked, "-n", here.namespace, "--kubeconfig", str(herd.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=60, check=False)


def nodes_of(here: Kubectl) -> list[str]:
    return sorted(one["metadata"]["name"] for one in here.json("get", "nodes")["items"])


def test_two_equal_nodes_have_level_50_and_explain_says_why(herd: Up, here: Kubectl) -> None:
    until(lambda: here("get", "nodes", "-o", f"jsonpath={LEVEL}").split() == ["50", "50"], "both nodes have their level")
    said = explain(herd, here, "migratability")
    assert said.returncode == 0, said.stderr
    _, *rows = said.stdout.splitlines()
    assert [row.split()[:5] for row in rows] == [[name, "50", "1", "of", "2"] for name in nodes_of(here)]


def test_a_running_machine_is_shown_with_the_nodes_that_would_take_it(herd: Up, here: Kubectl) -> None:
    here.create(machine("web", "Always"))
    until(lambda: "Running" in here.run("get", "vmi", "web").stdout, "it runs")
    said = explain(herd, here, "migratability", "vm/web")
    assert said.returncode == 0, said.stderr
    first, second, _, row = said.stdout.splitlines()
    assert first.startswith(f"vm {here.namespace}/web runs on ")
    assert "with aes, avx2, pcid" in first
    assert second == "1 of 1 other nodes would take it."
    assert row.split()[1] == "yes"


def test_the_baseline_of_equal_nodes_is_what_they_all_have(herd: Up, here: Kubectl) -> None:
    said = explain(herd, here, "baseline")
    assert said.returncode == 0, said.stderr
    assert "model:    Skylake-Client-IBRS (also Haswell, Westmere, Nehalem, Penryn, qemu64)" in said.stdout
    assert said.stdout.splitlines()[-1].split() == [nodes_of(here)[-1], "50", "50", "1", "of", "2"]


def test_what_is_not_there_or_cannot_be_read_is_refused_in_a_sentence(herd: Up, here: Kubectl) -> None:
    ghost = explain(herd, here, "migratability", "ghost")
    assert ghost.returncode == 8
    expected = f"herder: there is neither a node nor a running virtual machine 'ghost' in namespace '{here.namespace}'\n"
    assert ghost.stderr == expected
    assert explain(herd, here, "migratability", "pod/x").stderr == "herder: 'pod/x' is not NAME, node/NAME or vm/NAME\n"
    nothing = explain(herd, here, "baseline", "--nodes", "zone=nowhere")
    assert (nothing.returncode, nothing.stderr) == (8, "herder: --nodes: no node has labels like 'zone=nowhere'\n")
    assert explain(herd, here, "baseline", "--nodes", "zone in (").stderr.startswith("herder: --nodes: ")
