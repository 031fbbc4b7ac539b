"""`herder drain` and `herder undrain`: a herd of its own, because a node is emptied."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.herder import Herder
from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import machine
from tests.e2e.program import Up

GUESTS = 4


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Up]:
    with Up(tmp_path, nodes=2) as running:
        yield running


def places(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "vmi", "-o", "jsonpath={.items[*].status.nodeName}").split()


def test_a_node_is_planned_emptied_and_taken_back(herd: Up, kubectl_program: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(kubectl_program, herd.kubeconfig, tmp_path)
    herder = Herder(herd.kubeconfig, tmp_path, "default")
    for number in range(GUESTS):
        kubectl.create(machine(f"vm-{number}", "Always"))
    kubectl("wait", "vm", "--all", "--for=condition=Ready", "--timeout=60s")
    crowded = max(set(places(kubectl)), key=places(kubectl).count)
    empty = "node-2" if crowded == "node-1" else "node-1"
    planned = herder("drain", crowded, "--plan").splitlines()
    assert planned[0].split() == ["NAMESPACE", "VM", "TO", "WHY"]
    assert {line.split()[2] for line in planned[1:]} == {empty}
    document = json.loads(herder("drain", crowded, "--plan", "-o", "json"))
    assert (document["node"], {guest["target"] for guest in document["guests"]}) == (crowded, {empty})
    assert len(document["guests"]) == len(planned) - 1
    without = herder.run("drain", crowded, "-o", "json")
    assert (without.code, without.out) == (2, ""), "who wants an answer does not drain a node"
    assert "kubevirt.io/drain" not in kubectl("get", "node", crowded, "-o", "jsonpath={.spec.taints}"), "a plan changes nothing"
    lines = herder("drain", crowded, "--timeout", "120").splitlines()
    there = places(kubectl)
    assert lines[0] == f"node/{crowded} is being drained"
    assert lines[-1] == f"node/{crowded} is empty: {len(planned) - 1} moved"
    assert sum(line.endswith(f": moved to {empty}") for line in lines) == len(planned) - 1
    assert there == [empty] * GUESTS
    assert herder("undrain", crowded) == f"node/{crowded} takes guests again\n"
    assert herder("undrain", crowded) == f"node/{crowded} unchanged\n"
    assert herder("drain", crowded).splitlines()[-1] == f"node/{crowded} is empty"
    herder("undrain", crowded)
    _a_guest_that_cannot_leave_is_named_at_once_and_nothing_is_left_behind(kubectl, herder, empty)


def _a_guest_that_cannot_leave_is_named_at_once_and_nothing_is_left_behind(kubectl: Kubectl, herder: Herder, node: str) -> None:
    """In the same herd: one more would cost as long as all of this."""
    pinned = machine("pinned", "Always")
    pinned["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    kubectl.create(pinned)
    kubectl("wait", "vm/pinned", "--for=condition=Ready", "--timeout=60s")
    ended = herder.run("drain", node)
    assert ended.code == 10, ended
    assert ended.err.startswith(f"herder: 1 guest is on {node} and cannot leave: default/pinned. ")
    rows = [line for line in ended.out.splitlines() if line.startswith("default/pinned: ")]
    assert len(rows) == 1 and "no node can take it: " in rows[0], ended.out
    phases = kubectl("get", "vmim", "-o", "jsonpath={.items[*].status.phase}").split()
    assert set(phases) == {"Succeeded"}, phases
    condition = "jsonpath={.status.conditions[?(@.type=='Evacuating')].message}"
    assert "no node can take it" in kubectl("get", "vmi", "pinned", "-o", condition)
    herder("undrain", node)
    said = herder.refused("drain", node, "--timeout", "0.001", code=9)
    assert said.endswith(f"`herder drain {node}` follows it again, `herder undrain {node}` ends it")
