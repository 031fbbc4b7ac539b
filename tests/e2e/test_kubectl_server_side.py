"""`kubectl apply --server-side`: who holds what is the server's to know."""

from pathlib import Path

import pytest
import yaml

from tests.e2e.kubectl import Json, Kubectl
from tests.e2e.manifests import EXAMPLES, config_map, deployment, machine, placed, prepare

SERVER_SIDE = ("apply", "--server-side", "-f", "-")


@pytest.mark.parametrize("document", [deployment("web", 2), machine("web"), config_map("web", a="1")], ids=lambda one: one["kind"])
def test_an_object_is_applied_again_without_a_trace(here: Kubectl, document: Json) -> None:
    for _ in range(2):
        assert here(*SERVER_SIDE, stdin=document).endswith("/web serverside-applied\n")
    target = f"{document['kind']}/web"
    found = here.json("get", target, "--show-managed-fields")
    entries = found["metadata"]["managedFields"]
    assert [(one["manager"], one["operation"]) for one in entries] == [("kubectl", "Apply")]
    assert "annotations" not in found["metadata"]
    before = found["metadata"]["resourceVersion"]
    here(*SERVER_SIDE, stdin=document)
    assert here("get", target, "-o", "jsonpath={.metadata.resourceVersion}") == before


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_applied_by_the_server(here: Kubectl, path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text()))
    here = placed(here, documents)
    prepare(here, documents)
    for _ in range(2):
        said = here("apply", "--server-side", "-f", str(path))
        assert [line.split()[1] for line in said.splitlines()] == ["serverside-applied"] * len(documents)
    here("delete", "-f", str(path))


def test_a_conflict_is_told_and_forced(here: Kubectl) -> None:
    here(*SERVER_SIDE, stdin=deployment("web", 2))
    said = here.refused(*SERVER_SIDE, "--field-manager", "other", stdin=deployment("web", 5))
    assert said.startswith('error: Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas')
    here(*SERVER_SIDE, "--field-manager", "other", "--force-conflicts", stdin=deployment("web", 5))
    assert here("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "5"


def test_a_field_that_is_left_out_goes(here: Kubectl) -> None:
    here(*SERVER_SIDE, stdin=config_map("one", {"a": "1"}, k="v", l="v"))
    here(*SERVER_SIDE, stdin=config_map("one", None, k="v"))
    found = here.json("get", "cm", "one")
    assert (found["data"], found["metadata"].get("labels")) == ({"k": "v"}, None)


def test_one_goes_over_from_the_client_to_the_server(here: Kubectl) -> None:
    here("apply", "-f", "-", stdin=config_map("one", a="1", b="1"))
    here(*SERVER_SIDE, stdin=config_map("one", a="2"))
    found = here.json("get", "cm", "one", "--show-managed-fields")
    assert found["data"] == {"a": "2"}
    assert {one["operation"] for one in found["metadata"]["managedFields"]} == {"Apply"}


def test_a_dry_run_and_a_difference_write_nothing(here: Kubectl) -> None:
    said = here("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=machine("one"))
    assert said == "virtualmachine.kubevirt.io/one serverside-applied (server dry run)\n"
    assert here("get", "vm", "-o", "name") == ""
    shown = here.run("diff", "--server-side", "-f", "-", stdin=machine("one"))
    assert shown.returncode == 1, shown.stderr
    assert "+kind: VirtualMachine\n" in shown.stdout
    assert here("get", "vm", "-o", "name") == ""


def test_an_unknown_field_is_refused(here: Kubectl) -> None:
    document = config_map("one")
    document["dta"] = {"k": "v"}
    said = here.refused(*SERVER_SIDE, "--validate=false", stdin=document)
    assert ".dta: field not declared in schema" in said
