"""Everyday changes to built-in kinds: what kubectl sends for them is a strategic patch."""

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import config_map, deployment, pod


@pytest.fixture
def web(here: Kubectl) -> Kubectl:
    here.create(deployment("web", 1))
    return here


def _pods(kubectl: Kubectl, field: str) -> str:
    return kubectl("get", "deploy", "web", "-o", f"jsonpath={{.spec.template.{field}}}")


def test_an_image_is_set(web: Kubectl) -> None:
    assert web("set", "image", "deploy/web", "main=registry.example.com/web:2") == "deployment.apps/web image updated\n"
    assert _pods(web, "spec.containers[*].image") == "registry.example.com/web:2"


def test_variables_and_resources_are_set(web: Kubectl) -> None:
    web("set", "env", "deploy/web", "A=1", "B=2")
    web("set", "env", "deploy/web", "A-")
    web("set", "resources", "deploy/web", "--requests=cpu=100m")
    assert _pods(web, "spec.containers[0].env[*].name") == "B"
    assert _pods(web, "spec.containers[0].resources.requests.cpu") == "100m"


def test_a_patch_of_no_named_type_is_strategic(web: Kubectl) -> None:
    patch = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"x:1"}]}}}}'
    assert web("patch", "deploy", "web", "-p", patch) == "deployment.apps/web patched\n"
    assert sorted(_pods(web, "spec.containers[*].name").split()) == ["main", "side"]
    assert web("patch", "deploy", "web", "-p", patch) == "deployment.apps/web patched (no change)\n"


def test_a_restart_marks_the_pods(web: Kubectl) -> None:
    assert web("rollout", "restart", "deploy/web") == "deployment.apps/web restarted\n"
    assert "kubectl.kubernetes.io/restartedAt" in _pods(web, "metadata.annotations")


def test_a_rollout_is_paused_and_resumed(web: Kubectl) -> None:
    web("rollout", "pause", "deploy/web")
    assert web("get", "deploy", "web", "-o", "jsonpath={.spec.paused}") == "true"
    web("rollout", "resume", "deploy/web")
    assert web("get", "deploy", "web", "-o", "jsonpath={.spec.paused}") == ""


def test_a_deployment_is_edited(web: Kubectl) -> None:
    said = web("edit", "deploy", "web", KUBE_EDITOR="sed -i s/web:1/web:7/")
    assert said == "deployment.apps/web edited\n"
    assert _pods(web, "spec.containers[*].image") == "registry.example.com/web:7"


@pytest.mark.parametrize("target", ["cm/one", "pod/one", "deploy/one"])
def test_built_in_kinds_are_labelled_and_annotated(here: Kubectl, target: str) -> None:
    here.create(config_map("one"), pod("one"), deployment("one", 1))
    here("label", target, "a=1", "b=2")
    here("label", target, "a-")
    here("annotate", target, "note=some words")
    found = here.json("get", target)["metadata"]
    assert (found["labels"].get("a"), found["labels"]["b"], found["annotations"]["note"]) == (None, "2", "some words")


def test_a_node_is_cordoned_and_tainted_and_freed_again(kubectl: Kubectl) -> None:
    def spec(field: str) -> str:
        return kubectl("get", "node", "node-2", "-o", f"jsonpath={{.spec.{field}}}")

    assert kubectl("cordon", "node-2") == "node/node-2 cordoned\n"
    assert spec("unschedulable") == "true"
    kubectl("taint", "node", "node-2", "dedicated=herd:NoSchedule")
    assert "dedicated" in spec("taints[*].key").split()
    kubectl("taint", "node", "node-2", "dedicated-")
    assert "dedicated" not in spec("taints[*].key").split()
    assert kubectl("uncordon", "node-2") == "node/node-2 uncordoned\n"
    assert spec("unschedulable") == ""
