"""Changing what is there: patch, label, annotate, scale, replace, edit."""

from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import config_map, deployment, machine, pool


@pytest.fixture
def one(here: Kubectl) -> Kubectl:
    here.create(machine("one"))
    return here


def _strategy(kubectl: Kubectl) -> str:
    return kubectl("get", "vm", "one", "-o", "jsonpath={.spec.runStrategy}")


def test_a_merge_patch_changes_one_field(one: Kubectl) -> None:
    patch = ("patch", "vm", "one", "--type", "merge", "-p", '{"spec":{"runStrategy":"Always"}}')
    assert one(*patch) == "virtualmachine.kubevirt.io/one patched\n"
    assert _strategy(one) == "Always"
    assert one(*patch) == "virtualmachine.kubevirt.io/one patched (no change)\n"


def test_a_json_patch_tests_before_it_changes(one: Kubectl) -> None:
    change = '{"op":"replace","path":"/spec/runStrategy","value":"Manual"}'
    one("patch", "vm", "one", "--type", "json", "-p", f'[{{"op":"test","path":"/spec/runStrategy","value":"Halted"}},{change}]')
    assert _strategy(one) == "Manual"
    wrong = f'[{{"op":"test","path":"/spec/runStrategy","value":"Once"}},{change}]'
    said = one.refused("patch", "vm", "one", "--type", "json", "-p", wrong)
    assert said.startswith("The request is invalid: ")
    assert "test" in said


def test_the_status_is_patched_apart_from_the_rest(one: Kubectl) -> None:
    patch = '{"spec":{"runStrategy":"Always"},"status":{"printableStatus":"Running","ready":true}}'
    one("patch", "vm", "one", "--subresource", "status", "--type", "merge", "-p", patch)
    assert _strategy(one) == "Halted"
    assert one("get", "vm", "one", "--no-headers").split()[2:] == ["Running", "true"]


@pytest.mark.parametrize("verb", ["label", "annotate"])
@pytest.mark.parametrize("target", ["vm/one", "cm/two"])
def test_marks_are_set_kept_overwritten_and_removed(one: Kubectl, verb: str, target: str) -> None:
    one.create(config_map("two"))
    field = f"jsonpath={{.metadata.{verb[:5]}s.colour}}".replace("annots", "annotations")

    def colour() -> str:
        return one("get", target, "-o", field)

    one(verb, target, "colour=red")
    assert colour() == "red"
    assert "'colour' already has a value (red)" in one.refused(verb, target, "colour=blue")
    assert colour() == "red"
    one(verb, target, "colour=blue", "--overwrite")
    assert colour() == "blue"
    one(verb, target, "colour-")
    assert colour() == ""


def test_a_mark_on_a_version_that_is_gone_is_a_conflict(one: Kubectl) -> None:
    old = one("get", "vm", "one", "-o", "jsonpath={.metadata.resourceVersion}")
    one("label", "vm", "one", "a=b")
    for verb in ("label", "annotate"):
        said = one.refused(verb, "vm", "one", "c=d", "--resource-version", old)
        assert said.startswith('Error from server (Conflict): Operation cannot be fulfilled on virtualmachines.kubevirt.io "one"')


def test_many_are_labelled_at_once(one: Kubectl) -> None:
    one.create(machine("two"))
    one("label", "vm", "--all", "herd=yes")
    assert one("get", "vm", "-l", "herd=yes", "-o", "name").split() == [
        f"virtualmachine.kubevirt.io/{name}" for name in ("one", "two")
    ]


def test_a_node_is_labelled(kubectl: Kubectl) -> None:
    kubectl("label", "node", "node-1", "disktype=ssd", "--overwrite")
    assert kubectl("get", "nodes", "-l", "disktype=ssd", "-o", "name") == "node/node-1\n"


@pytest.mark.parametrize("document", [deployment("web", 2), pool("web", 2)], ids=["deployment", "pool"])
def test_scaling_honours_what_the_caller_believes(here: Kubectl, document: dict[str, str]) -> None:
    here.create(document)
    target = f"{document['kind']}/web"
    here("scale", target, "--replicas", "5", "--current-replicas", "2")
    assert here("get", target, "-o", "jsonpath={.spec.replicas}") == "5"
    assert here.refused("scale", target, "--replicas", "9", "--current-replicas", "2") == "error: Expected replicas to be 2, was 5"
    assert here("get", target, "-o", "jsonpath={.spec.replicas}") == "5"


def test_the_scale_of_a_pool_is_an_object_of_its_own(here: Kubectl) -> None:
    here.create(pool("herd", 3))
    scale = here.json("get", "vmpool", "herd", "--subresource", "scale")
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 3})


def test_replacing_puts_the_whole_object(one: Kubectl) -> None:
    one("label", "vm", "one", "gone=soon")
    assert one("replace", "-f", "-", stdin=machine("one", "Always")) == "virtualmachine.kubevirt.io/one replaced\n"
    replaced = one.json("get", "vm", "one")
    assert (replaced["spec"]["runStrategy"], "labels" in replaced["metadata"]) == ("Always", False)


def test_replacing_by_force_makes_a_new_object(one: Kubectl) -> None:
    before = one("get", "vm", "one", "-o", "jsonpath={.metadata.uid}")
    one("replace", "--force", "-f", "-", stdin=machine("one", "Always"))
    assert one("get", "vm", "one", "-o", "jsonpath={.metadata.uid}") != before


def test_replacing_a_version_that_is_gone_is_a_conflict(one: Kubectl) -> None:
    old = one.json("get", "vm", "one")
    one("label", "vm", "one", "a=b")
    said = one.refused("replace", "-f", "-", stdin=old)
    assert said.startswith("Error from server (Conflict): ")
    assert 'Operation cannot be fulfilled on virtualmachines.kubevirt.io "one": the object has been modified' in said


def test_an_edit_is_saved(one: Kubectl) -> None:
    said = one("edit", "vm", "one", KUBE_EDITOR="sed -i s/Halted/Always/")
    assert said == "virtualmachine.kubevirt.io/one edited\n"
    assert _strategy(one) == "Always"


def test_an_edit_that_changes_nothing_writes_nothing(one: Kubectl) -> None:
    answer = one.run("edit", "vm", "one", KUBE_EDITOR="true")
    assert (answer.returncode, answer.stderr) == (0, "Edit cancelled, no changes made.\n")


def test_an_edit_that_is_wrong_comes_back_with_the_reason(one: Kubectl, tmp_path: Path) -> None:
    # Shown the reason at the top of the file, this editor gives up: a person would correct the value here.
    shown = tmp_path / "shown"
    editor = f"sh -c 'cp $0 {shown}; sed -i s/Halted/Sometimes/ $0'"
    answer = one.run("edit", "vm", "one", KUBE_EDITOR=editor)
    assert answer.returncode == 1
    assert 'spec.runStrategy: Unsupported value: "Sometimes"' in shown.read_text()
    assert _strategy(one) == "Halted"
