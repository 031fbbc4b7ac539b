"""`herder drain` and `herder undrain`: a herd of its own, because a node is emptied."""

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
    assert "kubevirt.io/drain" not in kubectl("get", "node", crowded, "-o", "jsonpath={.spec.taints}"), "a plan changes nothing"
    lines = herder("drain", crowded, "--timeout", "120").splitlines()
    assert (lines[0], lines[-1]) == (f"node/{crowded} is being drained", f"0 guests on {crowded}")
    assert places(kubectl) == [empty] * GUESTS
    assert herder("undrain", crowded) == f"node/{crowded} takes guests again\n"
    assert herder("undrain", crowded) == f"node/{crowded} unchanged\n"
