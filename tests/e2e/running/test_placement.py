"""Pods and machines get nodes under `herder up`, and `herder explain placement` says where and why."""

import os
import subprocess

from tests.e2e.kubectl import Json, Kubectl
from tests.e2e.manifests import machine, pod
from tests.e2e.program import Up, until
from tests.engines.embedded import find_program


def explain(herd: Up, here: Kubectl, asked: str) -> "subprocess.CompletedProcess[str]":
    command = [str(find_program()), "explain", "placement", asked, "-n", here.namespace, "--kubeconfig", str(herd.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=30, check=False)


def node_of(here: Kubectl, name: str) -> str:
    return here.json("get", "pod", name)["spec"].get("nodeName", "")


def pinned(document: Json, host: str) -> Json:
    return document | {"spec": document["spec"] | {"nodeSelector": {"kubernetes.io/hostname": host}}}


def test_a_machine_gets_a_node_and_explain_shows_all_of_them(herd: Up, here: Kubectl) -> None:
    here.create(machine("web", "Always"))
    until(lambda: "Running" in here.run("get", "vmi", "web").stdout, "it runs")
    said = explain(herd, here, "vm/web")
    assert said.returncode == 0, said.stderr
    first, second, heading, *rows = said.stdout.splitlines()
    assert first.endswith("Were it placed now:")
    assert "would go to" in second
    assert heading.split() == ["NODE", "FITS", "SCORE", "RULE", "WHY", "NOT"]
    assert [row.split()[1] for row in rows] == ["yes", "yes"]


def test_a_pod_that_waits_says_why_and_goes_once_it_can(herd: Up, here: Kubectl) -> None:
    here.create(pinned(pod("lost"), "nowhere"))

    def message() -> str:
        conditions = here.json("get", "pod", "lost").get("status", {}).get("conditions", [])
        return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")

    said = until(message, "the condition says why")
    assert said == "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    assert said in explain(herd, here, "lost").stdout
    node = here.json("get", "nodes")["items"][0]["metadata"]["name"]
    here("label", "node", node, "kubernetes.io/hostname=nowhere", "--overwrite")
    try:
        until(lambda: node_of(here, "lost") == node, "it has the node that is labelled so now")
    finally:
        here("label", "node", node, f"kubernetes.io/hostname={node}", "--overwrite")


def test_what_is_not_there_cannot_be_explained(herd: Up, here: Kubectl) -> None:
    said = explain(herd, here, "ghost")
    assert said.returncode == 8
    assert (
        said.stderr == f"herder: there is neither a pod nor a virtual machine with a pod 'ghost' in namespace '{here.namespace}'\n"
    )
