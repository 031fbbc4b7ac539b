"""`kubectl apply` of built-in kinds: the patch that kubectl makes is a strategic one."""

import json
from pathlib import Path

import yaml

from tests.e2e.kubectl import Json, Kubectl
from tests.e2e.manifests import config_map, deployment


def _with_sidecar(document: Json) -> Json:
    document["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "registry.example.com/side:1"})
    return document


def _images(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}").split()


def test_a_deployment_is_created_then_unchanged_then_configured(here: Kubectl) -> None:
    apply = ("apply", "-f", "-")
    assert here(*apply, stdin=_with_sidecar(deployment("web", 2))) == "deployment.apps/web created\n"
    version = here("get", "deploy", "web", "-o", "jsonpath={.metadata.resourceVersion}")
    assert here(*apply, stdin=_with_sidecar(deployment("web", 2))) == "deployment.apps/web unchanged\n"
    assert here("get", "deploy", "web", "-o", "jsonpath={.metadata.resourceVersion}") == version
    assert here(*apply, stdin=_with_sidecar(deployment("web", 3))) == "deployment.apps/web configured\n"
    assert here("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "3"


def test_an_item_that_is_left_out_of_the_file_goes_and_what_others_added_stays(here: Kubectl) -> None:
    here("apply", "-f", "-", stdin=_with_sidecar(deployment("web", 1)))
    here("patch", "deploy", "web", "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"theirs","image":"x:1"}]}}}}')
    here("apply", "-f", "-", stdin=deployment("web", 1))
    assert sorted(_images(here)) == ["registry.example.com/web:1", "x:1"]


def test_a_difference_of_a_deployment_is_shown_and_nothing_is_written(here: Kubectl) -> None:
    here("apply", "-f", "-", stdin=deployment("web", 1))
    same = here.run("diff", "-f", "-", stdin=deployment("web", 1))
    assert (same.returncode, same.stdout) == (0, "")
    for words in (("diff",), ("diff", "--server-side", "--force-conflicts")):
        other = here.run(*words, "-f", "-", stdin=deployment("web", 4))
        assert other.returncode == 1, other.stderr
        assert "-  replicas: 1\n+  replicas: 4\n" in other.stdout
    assert here("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "1"


def test_what_is_no_longer_in_the_files_is_pruned_by_its_label(here: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    labels = {"herd": "one"}
    kept, dropped = config_map("kept", labels, a="1"), config_map("dropped", labels, a="1")
    here.create(config_map("stranger", labels, a="1"))  # never applied: not ours to prune
    file.write_text(yaml.safe_dump_all([kept, dropped]))
    prune = ("apply", "--prune", "-l", "herd=one", "--prune-allowlist=core/v1/ConfigMap", "-f", str(file))
    here(*prune)
    file.write_text(yaml.safe_dump_all([kept]))
    assert "configmap/dropped pruned" in here(*prune)
    assert here("get", "cm", "-o", "name").split() == ["configmap/kept", "configmap/stranger"]


def test_the_last_applied_file_is_kept_beside_the_object(here: Kubectl) -> None:
    here("apply", "-f", "-", stdin=deployment("web", 2))
    assert json.loads(here("apply", "view-last-applied", "deploy", "web", "-o", "json"))["spec"]["replicas"] == 2
