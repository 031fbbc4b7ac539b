"""`kubectl delete`: with and without what hangs on it."""

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import config_map, deployment, machine, owned, pod
from tests.e2e.program import until

HOLD = '{"metadata":{"finalizers":["example.com/hold"]}}'
LET_GO = '{"metadata":{"finalizers":null}}'


@pytest.fixture
def family(here: Kubectl) -> Kubectl:
    """A machine, and a ConfigMap that it owns."""
    here.create(machine("parent"))
    here.create(owned(config_map("child"), here.json("get", "vm", "parent")))
    return here


def _names(kubectl: Kubectl, kinds: str = "vm,cm") -> list[str]:
    return kubectl("get", kinds, "-o", "name").split()


def test_the_background_takes_what_is_owned_a_little_later(family: Kubectl) -> None:
    said = family("delete", "vm", "parent", "--cascade=background")
    assert said == f'virtualmachine.kubevirt.io "parent" deleted from {family.namespace} namespace\n'
    until(lambda: not _names(family), "what the machine owned is still there")


def test_the_foreground_waits_for_what_is_owned(family: Kubectl) -> None:
    family("patch", "cm", "child", "--type=merge", "-p", HOLD)
    family("delete", "vm", "parent", "--cascade=foreground", "--wait=false")
    until(lambda: family.json("get", "cm", "child")["metadata"].get("deletionTimestamp"), "the child is not being deleted")
    parent = family.json("get", "vm", "parent")["metadata"]
    assert parent["finalizers"] == ["foregroundDeletion"]
    assert parent["deletionTimestamp"]
    family("patch", "cm", "child", "--type=merge", "-p", LET_GO)
    family("wait", "vm/parent", "--for=delete", "--timeout=15s")
    assert _names(family) == []


def test_a_foreground_delete_returns_when_all_of_it_is_gone(family: Kubectl) -> None:
    family("delete", "vm", "parent", "--cascade=foreground")
    assert _names(family) == []


def test_orphans_stay_and_forget_their_owner(family: Kubectl) -> None:
    family("delete", "vm", "parent", "--cascade=orphan")
    assert _names(family) == ["configmap/child"]
    assert "ownerReferences" not in family.json("get", "cm", "child")["metadata"]


def test_a_deployment_takes_its_replica_sets_along(here: Kubectl) -> None:
    here.create(deployment("web", 1))
    replica_set = deployment("web-1", 1) | {"kind": "ReplicaSet"}
    here.create(owned(replica_set, here.json("get", "deploy", "web")))
    here("delete", "deploy", "web")
    until(lambda: not _names(here, "rs"), "the ReplicaSet is still there")


def test_a_delete_waits_for_finalizers_unless_told_not_to(here: Kubectl) -> None:
    here.create(machine("held"))
    here("patch", "vm", "held", "--type=merge", "-p", HOLD)
    here("delete", "vm", "held", "--wait=false")
    said = here.refused("delete", "vm", "held", "--timeout=1s")
    assert said.endswith("error: timed out waiting for the condition on virtualmachines/held")
    here("patch", "vm", "held", "--type=merge", "-p", LET_GO)
    assert _names(here) == []


def test_a_pod_on_a_node_goes_at_once_only_by_force(here: Kubectl) -> None:
    here.create(pod("running", "node-1"))
    here("delete", "pod", "running", "--wait=false", "--grace-period=30")
    assert here.json("get", "pod", "running")["metadata"]["deletionGracePeriodSeconds"] == 30
    here("delete", "pod", "running", "--grace-period=0", "--force")
    assert _names(here, "pod") == []


def test_a_selection_goes_and_the_rest_stays(here: Kubectl) -> None:
    here.create(config_map("a", {"old": "yes"}), config_map("b", {"old": "yes"}), config_map("c"))
    here("delete", "cm", "-l", "old=yes")
    assert _names(here) == ["configmap/c"]


def test_all_of_a_kind_go_and_other_kinds_stay(here: Kubectl) -> None:
    here.create(machine("one"), machine("two"), config_map("a"))
    here("delete", "vm", "--all")
    assert _names(here) == ["configmap/a"]


def test_a_dry_run_deletes_nothing(here: Kubectl) -> None:
    here.create(config_map("a"))
    assert here("delete", "cm", "a", "--dry-run=server").endswith("(server dry run)\n")
    assert _names(here) == ["configmap/a"]


def test_what_is_not_there_may_be_ignored(here: Kubectl) -> None:
    assert here.refused("delete", "cm", "a") == 'Error from server (NotFound): configmaps "a" not found'
    assert here("delete", "cm", "a", "--ignore-not-found") == ""


def test_a_namespace_goes_with_all_that_is_in_it(here: Kubectl) -> None:
    here.create(machine("one"), config_map("a"), pod("b"))
    here("delete", "namespace", here.namespace, "--timeout=20s")
    assert here.refused("get", "ns", here.namespace).endswith("not found")
    assert here("get", "vm,cm,pod", "-A", "-o", "name", f"--field-selector=metadata.namespace={here.namespace}") == ""
