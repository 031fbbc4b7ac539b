"""What kubectl does every day with nodes, and with what one may do."""

import subprocess
import time
import uuid
from collections.abc import Iterator

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import pod


@pytest.fixture
def node(kubectl: Kubectl) -> Iterator[str]:
    """One of the test's own, on which nobody else has put anything."""
    name = f"own-{uuid.uuid4().hex[:8]}"
    kubectl.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    yield name
    kubectl.run("delete", "node", name)


def _unschedulable(kubectl: Kubectl, node: str) -> str:
    return kubectl("get", "node", node, "-o", "jsonpath={.spec.unschedulable}")


@pytest.mark.parametrize("words", [("create", "pods"), ("delete", "nodes"), ("get", "/version"), ("*", "*")], ids=str)
def test_whoever_may_do_everything_is_told_so(here: Kubectl, words: tuple[str, str]) -> None:
    assert here("auth", "can-i", *words) == "yes\n"


def test_all_that_one_may_do_is_listed(here: Kubectl) -> None:
    assert "*.*" in here("auth", "can-i", "--list")


def test_one_is_told_who_one_is(kubectl: Kubectl) -> None:
    assert "system:masters" in kubectl("auth", "whoami")


def test_a_token_is_made_for_a_service_account(here: Kubectl) -> None:
    here("create", "serviceaccount", "robot")
    assert here("create", "token", "robot").count(".") == 2


def test_a_node_is_closed_and_opened(kubectl: Kubectl, node: str) -> None:
    assert kubectl("cordon", node) == f"node/{node} cordoned\n"
    assert _unschedulable(kubectl, node) == "true"
    assert kubectl("uncordon", node) == f"node/{node} uncordoned\n"
    assert _unschedulable(kubectl, node) == ""


def test_an_empty_node_is_drained(kubectl: Kubectl, node: str) -> None:
    assert f"node/{node} drained" in kubectl("drain", node)
    assert _unschedulable(kubectl, node) == "true"


def test_a_node_is_drained_of_its_pods(here: Kubectl, node: str) -> None:
    here.create(pod("away", node))
    said = here("drain", node, "--force", "--grace-period=0", "--timeout=10s")
    assert "evicting pod" in said
    assert "not found" in here.refused("get", "pod", "away")


def _well(kubectl: Kubectl, name: str, node: str) -> None:
    """A pod that runs there and is ready, as a kubelet would say."""
    kubectl.create(pod(name, node, {"app": "web"}))
    status = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", status)


def _lines_until(process: "subprocess.Popen[str]", words: str) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or words not in lines[-1]:
        line = process.stdout.readline()
        assert line, f"it ended before it said {words!r}: {lines}"
        lines.append(line)
    return lines


def test_a_drain_waits_for_a_budget(here: Kubectl, node: str) -> None:
    for name in ("one", "two"):
        _well(here, name, node)
    here("create", "pdb", "web", "--selector=app=web", "--min-available=1")
    here("wait", "pdb/web", "--for=jsonpath={.status.disruptionsAllowed}=1", "--timeout=20s")
    drain = here.start("drain", node, "--force", "--grace-period=0", "--timeout=60s")
    try:
        _lines_until(drain, "Cannot evict pod as it would violate the pod's disruption budget.")
        (left,) = here("get", "pods", "-o", "name").split()
        # Elsewhere there is another one now, and the last may go.
        _well(here, "three", f"not-{node}")
        _lines_until(drain, f"node/{node} drained")
        assert drain.wait(30) == 0
    finally:
        drain.kill()
        drain.wait()
    assert here("get", "pods", "-o", "name").split() == ["pod/three"]
    assert left in ("pod/one", "pod/two")
    assert _unschedulable(here, node) == "true"


def test_a_budget_is_described_with_what_was_told_of_it(here: Kubectl) -> None:
    here("create", "pdb", "web", "--selector=app=web", "--min-available=1")
    here("wait", "pdb/web", "--for=jsonpath={.status.observedGeneration}=1", "--timeout=20s")
    deadline = time.monotonic() + 20
    while "No matching pods found" not in (said := here("describe", "pdb", "web")) and time.monotonic() < deadline:
        pass
    assert "NoPods" in said and "controllermanager" in said


def test_a_node_is_tainted(kubectl: Kubectl, node: str) -> None:
    assert kubectl("taint", "node", node, "example.com/x=y:NoSchedule") == f"node/{node} tainted\n"
    assert kubectl("taint", "node", node, "example.com/x-") == f"node/{node} untainted\n"
