"""`kubectl get`: every way to choose objects and to print them."""

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.manifests import claim, config_map, deployment, machine, pod, pool


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def _names(kubectl: Kubectl, *words: str) -> list[str]:
    return kubectl("get", *words, "-o", "name").split()


@pytest.fixture
def three(here: Kubectl) -> Kubectl:
    """Three ConfigMaps, two of which have a label in common."""
    here.create(config_map("a", {"tier": "web"}, one="1"), config_map("b", {"tier": "web"}), config_map("c", {"tier": "db"}))
    return here


def test_the_table_of_a_built_in_kind_is_kubernetes_own(three: Kubectl) -> None:
    heading, first, *rest = _rows(three("get", "cm"))
    assert heading == ["NAME", "DATA", "AGE"]
    assert (first[:2], len(rest)) == (["a", "1"], 2)


def test_wide_shows_more_of_a_deployment(here: Kubectl) -> None:
    here.create(deployment("web", 2))
    heading, row = _rows(here("get", "deploy", "-o", "wide"))
    assert heading == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert (row[:4], row[5:]) == (["web", "0/2", "0", "0"], ["main", "registry.example.com/web:1", "app=web"])


def test_wide_shows_the_node_of_a_pod(here: Kubectl) -> None:
    here.create(pod("placed", "node-1"))
    heading, row = _rows(here("get", "po", "-o", "wide"))
    assert row[heading.index("NODE")] == "node-1"


def test_our_kinds_have_their_own_columns(here: Kubectl) -> None:
    here.create(pool("herd", 4), machine("one"))
    heading, row = _rows(here("get", "vmpool"))
    assert heading == ["NAME", "DESIRED", "CURRENT", "READY", "UPDATED", "AGE"]
    assert row[:2] == ["herd", "4"]
    assert "STATUS" in _rows(here("get", "vm"))[0]


def test_several_kinds_are_asked_for_at_once(here: Kubectl) -> None:
    here.create(claim("disk"), machine("one"), config_map("a"))
    assert _names(here, "pvc,vm,cm") == ["persistentvolumeclaim/disk", "virtualmachine.kubevirt.io/one", "configmap/a"]


def test_labels_are_shown_beside_the_columns(three: Kubectl) -> None:
    assert [row[-1] for row in _rows(three("get", "cm", "--show-labels"))] == ["LABELS", "tier=web", "tier=web", "tier=db"]
    assert _rows(three("get", "cm", "c", "-L", "tier"))[1][-1] == "db"


@pytest.mark.parametrize(
    ("selector", "chosen"), [("tier=web", "ab"), ("tier!=web", "c"), ("tier in (db,web)", "abc"), ("!tier", ""), ("tier=web,x", "")]
)
def test_a_label_selector_chooses(three: Kubectl, selector: str, chosen: str) -> None:
    assert _names(three, "cm", "-l", selector) == [f"configmap/{name}" for name in chosen]


def test_a_field_selector_chooses(three: Kubectl) -> None:
    three.create(pod("here", "node-1"), pod("there", "node-2"))
    assert _names(three, "cm", "--field-selector", "metadata.name=b") == ["configmap/b"]
    assert _names(three, "pods", "--field-selector", "spec.nodeName=node-2") == ["pod/there"]
    assert _names(three, "pods", "--field-selector", "status.phase!=Pending") == []


def test_pages_add_up_to_the_whole(three: Kubectl) -> None:
    whole = three("get", "cm", "-o", "name")
    paged = three.run("get", "cm", "-o", "name", "--chunk-size", "1", "-v", "6")
    assert paged.stdout == whole
    assert paged.stderr.count("limit=1") == 3
    assert len(_rows(three("get", "cm", "--chunk-size", "2"))) == 4


def test_all_namespaces_are_listed_with_a_column_of_their_own(three: Kubectl) -> None:
    rows = _rows(three("get", "cm", "-A"))
    assert rows[0][0] == "NAMESPACE"
    assert [row[:2] for row in rows if row[0] == three.namespace] == [[three.namespace, name] for name in "abc"]


def test_a_document_comes_as_json_and_as_yaml(here: Kubectl) -> None:
    here.create(machine("one", "Always"))
    document = here.json("get", "vm", "one")
    assert (document["apiVersion"], document["kind"], document["spec"]["runStrategy"]) == (
        "kubevirt.io/v1",
        "VirtualMachine",
        "Always",
    )
    assert "managedFields" not in document["metadata"]
    assert "\nspec:\n  runStrategy: Always\n" in here("get", "vm", "one", "-o", "yaml")
    assert here.json("get", "vm")["kind"] == "List"


def test_managed_fields_are_shown_on_demand(here: Kubectl) -> None:
    here.create(machine("one"))
    assert here.json("get", "vm", "one", "--show-managed-fields")["metadata"]["managedFields"][0]["manager"] == "kubectl-create"


def test_fields_are_picked_out(here: Kubectl) -> None:
    here.create(machine("one", "Always"), machine("two", "Manual"))
    assert here("get", "vm", "one", "-o", "jsonpath={.spec.runStrategy}") == "Always"
    assert (
        here("get", "vm", "-o", "jsonpath={range .items[*]}{.metadata.name}={.spec.runStrategy};{end}") == "one=Always;two=Manual;"
    )
    columns = here("get", "vm", "-o", "custom-columns=WHO:.metadata.name,HOW:.spec.runStrategy")
    assert _rows(columns) == [["WHO", "HOW"], ["one", "Always"], ["two", "Manual"]]
    assert here("get", "vm", "-o", "go-template={{len .items}}") == "2"


def test_what_is_printed_can_be_sorted(three: Kubectl) -> None:
    sorted_names = [row[0] for row in _rows(three("get", "cm", "--sort-by", ".metadata.labels.tier"))[1:]]
    assert sorted_names == ["c", "a", "b"]


def test_an_empty_namespace_says_so(here: Kubectl) -> None:
    assert here.run("get", "pods").stderr == f"No resources found in {here.namespace} namespace.\n"


def test_all_lists_every_kind_of_work_at_once(here: Kubectl) -> None:
    here.create(pod("a"), deployment("b", 1), machine("c"), pool("d", 1))
    listed = set(_names(here, "all"))
    assert {"pod/a", "deployment.apps/b", "virtualmachine.kubevirt.io/c", "virtualmachinepool.kubevirt.io/d"} <= listed
