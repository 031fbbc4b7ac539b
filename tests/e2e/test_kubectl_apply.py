"""`kubectl apply`, `diff` and `create`: a file made true, again and again."""

import json
from pathlib import Path

import pytest
import yaml

from tests.e2e.kubectl import Json, Kubectl
from tests.e2e.manifests import EXAMPLES, config_map, deployment, machine, placed, pool, prepare

# Defaults inside its list of disks make kubectl see a difference that the server then finds to be none.
FILLED_IN_LISTS = ("VirtualMachineInstance",)


def _documents(path: Path) -> list[Json]:
    return list(yaml.safe_load_all(path.read_text()))


def _versions(kubectl: Kubectl, path: Path) -> list[str]:
    found = kubectl("get", "-f", str(path), "-o", "jsonpath={.metadata.resourceVersion}{.items[*].metadata.resourceVersion}")
    return found.split()


def _outcomes(printed: str) -> list[str]:
    return [line.split()[1] for line in printed.splitlines()]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_created_then_unchanged_then_deleted(here: Kubectl, path: Path) -> None:
    documents = _documents(path)
    here = placed(here, documents)
    prepare(here, documents)
    apply = ("apply", "-f", str(path))
    assert _outcomes(here(*apply)) == ["created"] * len(documents)
    before = _versions(here, path)
    again = ["configured" if document["kind"] in FILLED_IN_LISTS else "unchanged" for document in documents]
    assert _outcomes(here(*apply)) == again
    assert _versions(here, path) == before
    here("delete", "-f", str(path))
    assert here("get", "-f", str(path), "--ignore-not-found", "-o", "name") == ""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_with_a_change_is_configured(here: Kubectl, path: Path, tmp_path: Path) -> None:
    documents = [document for document in _documents(path) if document["kind"] != "StatefulSet"]
    here = placed(here, documents)
    prepare(here, documents)
    file = tmp_path / "changed.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    here("apply", "-f", str(file))
    for document in documents:
        document["metadata"].setdefault("labels", {})["changed"] = "yes"
    file.write_text(yaml.safe_dump_all(documents))
    assert _outcomes(here("apply", "-f", str(file))) == ["configured"] * len(documents)
    labels = "jsonpath={.metadata.labels.changed}{range .items[*]}{.metadata.labels.changed} {end}"
    assert here("get", "-f", str(file), "-o", labels).split() == ["yes"] * len(documents)
    here("delete", "-f", str(file))


def test_what_is_left_out_of_the_file_is_removed_and_what_others_set_stays(here: Kubectl) -> None:
    here("apply", "-f", "-", stdin=machine("one", labels={"mine": "1", "also": "2"}))
    here("label", "vm", "one", "theirs=3")
    assert here("apply", "-f", "-", stdin=machine("one", labels={"mine": "9"})) == "virtualmachine.kubevirt.io/one configured\n"
    assert here.json("get", "vm", "one")["metadata"]["labels"] == {"mine": "9", "theirs": "3"}


def test_the_last_applied_file_can_be_read_back(here: Kubectl) -> None:
    here("apply", "-f", "-", stdin=machine("one", "Always"))
    assert json.loads(here("apply", "view-last-applied", "vm", "one", "-o", "json"))["spec"]["runStrategy"] == "Always"


def test_a_dry_run_on_the_server_changes_nothing(here: Kubectl) -> None:
    said = here("apply", "--dry-run=server", "-f", "-", stdin=machine("one"))
    assert said == "virtualmachine.kubevirt.io/one created (server dry run)\n"
    assert here("get", "vm", "-o", "name") == ""


def test_a_difference_is_shown_and_nothing_is_written(here: Kubectl) -> None:
    here("apply", "-f", "-", stdin=machine("one", "Halted"))
    same = here.run("diff", "-f", "-", stdin=machine("one", "Halted"))
    assert (same.returncode, same.stdout) == (0, "")
    other = here.run("diff", "-f", "-", stdin=machine("one", "Always"))
    assert other.returncode == 1
    assert "-  runStrategy: Halted\n+  runStrategy: Always\n" in other.stdout
    assert here("get", "vm", "one", "-o", "jsonpath={.spec.runStrategy}") == "Halted"


def test_built_in_kinds_are_created_from_a_file(here: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([deployment("web", 1), config_map("settings", colour="blue")]))
    assert here("create", "-f", str(file)) == "deployment.apps/web created\nconfigmap/settings created\n"


def test_a_folder_is_applied_whole(here: Kubectl, tmp_path: Path) -> None:
    for document in (machine("one"), pool("herd", 2)):
        (tmp_path / f"{document['kind']}.json").write_text(json.dumps(document))
    said = here("apply", "-f", str(tmp_path))
    assert said == "virtualmachine.kubevirt.io/one created\nvirtualmachinepool.kubevirt.io/herd created\n"


def test_a_list_of_objects_is_taken_apart(here: Kubectl) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [machine("one"), config_map("two")]}
    assert here("apply", "-f", "-", stdin=listed) == "virtualmachine.kubevirt.io/one created\nconfigmap/two created\n"


def test_what_was_printed_can_be_made_again(here: Kubectl) -> None:
    here.create(machine("one", "Manual"))
    printed = here.json("get", "vm", "one")
    here("delete", "vm", "one")
    for field in ("uid", "resourceVersion"):
        del printed["metadata"][field]
    here("create", "-f", "-", stdin=printed)
    assert here("get", "vm", "one", "-o", "jsonpath={.spec.runStrategy}") == "Manual"


def test_a_name_is_generated(here: Kubectl) -> None:
    document = config_map("unused")
    document["metadata"] = {"generateName": "made-"}
    assert here("create", "-f", "-", "-o", "name", stdin=document).startswith("configmap/made-")
