"""`kubectl describe` and `kubectl events`: an object, and what happened to it."""

import uuid

import pytest

from tests.e2e.kubectl import Json, Kubectl
from tests.e2e.manifests import (
    OUR_KINDS,
    claim,
    config_map,
    deployment,
    event,
    example_of,
    is_namespaced,
    machine,
    placed,
    pod,
    prepare,
    secret,
)


def _fields(described: str) -> dict[str, str]:
    """The lines at the left margin: what it is about, and the first word of it."""
    pairs = (line.partition(":") for line in described.splitlines() if line[:1].strip())
    return {name: value.strip() for name, _, value in pairs}


def test_a_pod_is_described_with_its_containers_and_events(here: Kubectl) -> None:
    here.create(pod("web", "node-1", {"app": "web"}))
    here.create(event("web.1", here.namespace, here.json("get", "pod", "web"), "the image was there already"))
    described = here("describe", "pod", "web")
    fields = _fields(described)
    assert (fields["Name"], fields["Namespace"], fields["Labels"]) == ("web", here.namespace, "app=web")
    assert (fields["Node"], fields["Status"]) == ("node-1/", "Pending")
    assert "Image:        registry.example.com/web:1" in described
    assert described.rstrip().endswith("the image was there already")


def test_a_node_is_described_with_its_capacity_and_its_pods(here: Kubectl) -> None:
    here.create(pod("placed", "node-2"))
    described = here("describe", "node", "node-2")
    assert "Ready            True" in described
    assert "HolderIdentity:  node-2" in described
    assert "Container Runtime Version:  simulated://" in described
    assert any(line.split()[:2] == [here.namespace, "placed"] for line in described.splitlines())


def test_a_node_is_described_with_its_events(kubectl: Kubectl) -> None:
    node = kubectl.json("get", "node", "node-1")
    # kubectl asks for a node's events by its name as its uid, as the kubelet writes them.
    node["metadata"]["uid"] = "node-1"
    kubectl.create(event(f"node-1.{uuid.uuid4().hex[:8]}", "default", node, "a fan was replaced"))
    assert "a fan was replaced" in kubectl("describe", "node", "node-1")


def test_a_namespace_is_described(here: Kubectl) -> None:
    fields = _fields(here("describe", "namespace", here.namespace))
    assert (fields["Name"], fields["Status"]) == (here.namespace, "Active")
    assert fields["Labels"] == f"kubernetes.io/metadata.name={here.namespace}"


def test_a_config_map_is_described_with_its_data(here: Kubectl) -> None:
    here.create(config_map("settings", colour="blue"))
    assert "colour:\n----\nblue\n" in here("describe", "cm", "settings")


def test_a_secret_is_described_without_its_values(here: Kubectl) -> None:
    here.create(secret("password", key="swordfish"))
    described = here("describe", "secret", "password")
    assert "key:  9 bytes" in described
    assert "swordfish" not in described


def test_a_deployment_is_described_with_its_template(here: Kubectl) -> None:
    here.create(deployment("web", 3))
    described = here("describe", "deploy", "web")
    assert _fields(described)["Replicas"].startswith("3 desired | 0 updated")
    assert _fields(described)["StrategyType"] == "RollingUpdate"
    assert "Image:         registry.example.com/web:1" in described


def test_a_claim_is_described_as_pending(here: Kubectl) -> None:
    here.create(claim("disk"))
    fields = _fields(here("describe", "pvc", "disk"))
    assert (fields["Status"], fields["VolumeMode"]) == ("Pending", "Filesystem")


def test_a_definition_is_described(kubectl: Kubectl) -> None:
    described = kubectl("describe", "crd", "virtualmachines.kubevirt.io")
    assert "List Kind:  VirtualMachineList" in described
    assert "Reason:                NoConflicts" in described


def _own(document: Json) -> Json:
    """Under a name that no other test uses: some kinds live outside namespaces. Of the settings there is one."""
    if document["kind"] == "KubeVirt":
        return document
    return document | {"metadata": document["metadata"] | {"name": f"described-{uuid.uuid4().hex[:8]}"}}


def kubectl_of(here: Kubectl, document: Json) -> Kubectl:
    return here if is_namespaced(document) else here.inside("default")


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_each_of_our_kinds_is_described_with_its_events(here: Kubectl, kind: str) -> None:
    document = _own(example_of(kind))
    name = document["metadata"]["name"]
    here = placed(here, [document])
    prepare(here, [document])
    here.create(document)
    # Events of what lives outside namespaces are in the namespace default.
    place = kubectl_of(here, document)
    place.create(event(f"{name}.1", place.namespace, place.json("get", kind, name), "somebody looked at it"))
    described = place("describe", kind, name)
    fields = _fields(described)
    assert (fields["Name"], fields["Kind"], fields["API Version"]) == (name, kind, document["apiVersion"])
    assert "Spec" in fields
    assert described.rstrip().endswith("somebody looked at it")


def test_events_are_listed_for_all_and_for_one(here: Kubectl) -> None:
    here.create(pod("a"), machine("b"))
    for kind, name in (("pod", "a"), ("vm", "b")):
        here.create(event(f"{name}.1", here.namespace, here.json("get", kind, name), f"about {name}"))
    assert {line.split()[-1] for line in here("events").splitlines()[1:]} == {"a", "b"}
    only = here("events", "--for", "vm/b").splitlines()
    assert [line.split()[1:4] for line in only[1:]] == [["Normal", "Noticed", "VirtualMachine/b"]]
    assert "about b" in here("get", "events", "--field-selector", "involvedObject.kind=VirtualMachine")
    assert here.run("events", "--types", "Warning").stderr.startswith("No events found")
