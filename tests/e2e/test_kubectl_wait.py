"""`kubectl wait`: scripts go on when it is so, and not before."""

from subprocess import Popen

import pytest

from tests.e2e.kubectl import PATIENCE, Kubectl
from tests.e2e.manifests import config_map, machine, pod

READY = '{"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}'


@pytest.fixture
def one(here: Kubectl) -> Kubectl:
    here.create(machine("one"))
    return here


def _ended(waiting: "Popen[str]") -> str:
    printed, _ = waiting.communicate(timeout=PATIENCE)
    assert waiting.returncode == 0, printed
    return printed


def test_nodes_and_definitions_are_as_they_should_be(kubectl: Kubectl) -> None:
    kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=15s")
    kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=5s")


def test_a_condition_is_waited_for(one: Kubectl) -> None:
    waiting = one.start("wait", "vm/one", "--for=condition=Ready", "--timeout=20s")
    one("patch", "vm", "one", "--subresource=status", "--type=merge", "-p", READY)
    assert _ended(waiting) == "virtualmachine.kubevirt.io/one condition met\n"


def test_a_field_is_waited_for(one: Kubectl) -> None:
    waiting = one.start("wait", "vm/one", "--for=jsonpath={.spec.runStrategy}=Always", "--timeout=20s")
    one("patch", "vm", "one", "--type=merge", "-p", '{"spec":{"runStrategy":"Always"}}')
    assert _ended(waiting) == "virtualmachine.kubevirt.io/one condition met\n"


def test_an_end_is_waited_for(one: Kubectl) -> None:
    one("patch", "vm", "one", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    one("delete", "vm", "one", "--wait=false")
    waiting = one.start("wait", "vm/one", "--for=delete", "--timeout=20s", "-v=6")
    # One that is gone before kubectl looks is no news to it: go on when its log says that it watches.
    assert waiting.stdout is not None
    assert any("watch=true" in line for line in iter(waiting.stdout.readline, ""))
    one("patch", "vm", "one", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    # Its log and what it prints share a stream, and it may log after the last that it prints.
    assert "virtualmachine.kubevirt.io/one condition met" in _ended(waiting).splitlines()


def test_a_beginning_is_waited_for(here: Kubectl) -> None:
    waiting = here.start("wait", "cm/late", "--for=create", "--timeout=20s")
    here.create(config_map("late"))
    assert _ended(waiting) == "configmap/late condition met\n"


def test_waiting_ends_when_time_is_over(one: Kubectl) -> None:
    said = one.refused("wait", "vm/one", "--for=condition=Ready", "--timeout=1s")
    assert said == "error: timed out waiting for the condition on virtualmachines/one"


def test_a_selection_is_waited_for(here: Kubectl) -> None:
    here.create(pod("a", labels={"app": "web"}), pod("b", labels={"app": "web"}), pod("c"))
    waiting = here.start("wait", "pod", "-l", "app=web", "--for=condition=Ready", "--timeout=20s")
    for name in "ab":
        here("patch", "pod", name, "--subresource=status", "--type=merge", "-p", READY)
    assert sorted(_ended(waiting).splitlines()) == ["pod/a condition met", "pod/b condition met"]
