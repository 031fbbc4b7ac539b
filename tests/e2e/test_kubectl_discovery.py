"""What kubectl can find out about the server and its kinds."""

import json

import pytest

from herder.api.registry import KINDS, KindInfo
from tests.e2e.kubectl import Kubectl


def _lines(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


@pytest.mark.parametrize("info", KINDS, ids=lambda info: info.kind)
def test_our_kinds_are_listed_with_their_short_names(kubectl: Kubectl, info: KindInfo) -> None:
    listed = _lines(kubectl("api-resources", "--no-headers", f"--api-group={info.group}"))
    names = [",".join(info.short_names)] if info.short_names else []
    assert [info.plural, *names, info.api_version, str(info.namespaced).lower(), info.kind] in listed


def test_verbs_and_categories_are_listed(kubectl: Kubectl) -> None:
    pods = next(line for line in _lines(kubectl("api-resources", "-o", "wide")) if line[0] == "pods")
    assert pods[-2:] == ["create,delete,deletecollection,get,list,patch,update,watch", "all"]
    in_all = kubectl("api-resources", "--categories=all", "-o", "name").split()
    assert {"pods", "deployments.apps", "virtualmachines.kubevirt.io"} <= set(in_all)


def test_kinds_are_told_apart_by_where_they_live(kubectl: Kubectl) -> None:
    outside = kubectl("api-resources", "--namespaced=false", "-o", "name").split()
    assert "nodes" in outside
    assert "pods" not in outside


def test_versions_are_listed(kubectl: Kubectl) -> None:
    versions = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "kubevirt.io/v1", "apiextensions.k8s.io/v1"} <= set(versions)


def test_both_sides_say_their_version(kubectl: Kubectl) -> None:
    answer = kubectl.run("version", "-o", "json")
    told = json.loads(answer.stdout)
    assert "+herder-" in told["serverVersion"]["gitVersion"]
    assert "WARNING" not in answer.stderr  # nothing about a version too far from kubectl's own


def test_cluster_info_does_not_crash(kubectl: Kubectl) -> None:
    answer = kubectl.run("cluster-info")
    assert "panic" not in answer.stderr
    assert answer.returncode in (0, 1)


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("/readyz", "ok"),
        ("/version", '"major"'),
        ("/api/v1/namespaces/default", '"Active"'),
        ("/apis/kubevirt.io/v1/virtualmachines?limit=1", '"VirtualMachineList"'),
        ("/openapi/v3", '"paths"'),
        ("/metrics", "# TYPE"),
    ],
)
def test_a_path_is_read_as_it_is(kubectl: Kubectl, path: str, holds: str) -> None:
    assert holds in kubectl("get", "--raw", path)


@pytest.mark.parametrize(
    ("what", "kind", "field"),
    [
        ("pods", "Pod", "spec"),
        ("vmpool", "VirtualMachinePool", "spec"),
        ("vm", "VirtualMachine", "status"),
        ("nodes", "Node", "spec"),
    ],
)
def test_a_kind_is_explained(kubectl: Kubectl, what: str, kind: str, field: str) -> None:
    explained = kubectl("explain", what)
    assert explained.splitlines()[0 if kind in ("Pod", "Node") else 1] == f"KIND:       {kind}"
    assert f"  {field}\t<" in explained


def test_a_field_of_a_built_in_kind_is_explained(kubectl: Kubectl) -> None:
    explained = kubectl("explain", "pods.spec.containers")
    assert "FIELD: containers <[]Container>" in explained
    assert "  name\t<string> -required-" in explained


def test_a_field_of_ours_is_explained_in_words(kubectl: Kubectl) -> None:
    explained = kubectl("explain", "vm.spec.runStrategy")
    assert "FIELD: runStrategy <string>" in explained
    assert "ENUM:\n    Always\n    Halted\n    Manual\n    Once\n    RerunOnFailure\n" in explained
    assert explained.partition("DESCRIPTION:")[2].strip() not in ("", "<empty>")


def test_all_fields_below_are_explained_at_once(kubectl: Kubectl) -> None:
    explained = kubectl("explain", "vm.spec", "--recursive")
    assert "  runStrategy\t<string>" in explained
    assert "    spec\t<Object>" in explained
    assert "          evictionStrategy" not in explained.partition("runStrategy")[0]


def test_a_field_that_is_none_is_said_to_be_none(kubectl: Kubectl) -> None:
    assert kubectl.refused("explain", "vm.spec.nonsense") == 'error: field "nonsense" does not exist'
