"""VirtualMachine, VirtualMachineInstance and DataVolume, beyond their schemas."""

from typing import Any

import pytest

from herder.api.problems import DUPLICATE, INVALID, REQUIRED
from herder.api.validation import problems_of

Json = dict[str, Any]
CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ROOT: Json = {"name": "root", "emptyDisk": {"capacity": "1Gi"}}


def _instance(domain: Json | None = None, **spec: Any) -> Json:
    body = {"domain": domain or {}, **spec}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "a"}, "spec": body}


def _machine(templates: list[Json], volumes: list[Json]) -> Json:
    template = {"spec": {"domain": {}, "volumes": volumes}}
    body = {"running": True, "dataVolumeTemplates": templates, "template": template}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "a"}, "spec": body}


def _data_volume(**spec: Any) -> Json:
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "a"}, "spec": spec}


def _template(name: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"source": {"blank": {}}, "pvc": CLAIM}}


def _uses(name: str) -> Json:
    return {"name": "disk", "dataVolume": {"name": name}}


def _found(document: Json) -> list[tuple[str, str]]:
    return [(problem.field, problem.reason) for problem in problems_of(document)]


def test_a_disk_without_a_volume_is_refused_and_the_volumes_are_named() -> None:
    (problem,) = problems_of(_instance({"devices": {"disks": [{"name": "rot"}]}}, volumes=[ROOT]))
    assert problem.field == "spec.domain.devices.disks[0].name"
    assert problem.message == 'Invalid value: "rot": there is no volume of this name: volumes has root'


def test_the_kernel_must_be_on_a_volume() -> None:
    domain = {"firmware": {"kernelBoot": {"volume": {"name": "kernel"}}}}
    assert _found(_instance(domain)) == [("spec.domain.firmware.kernelBoot.volume.name", INVALID)]


def test_cards_and_networks_belong_together() -> None:
    document = _instance({"devices": {"interfaces": [{"name": "one"}]}}, networks=[{"name": "two", "pod": {}}])
    assert _found(document) == [("spec.domain.devices.interfaces[0].name", INVALID), ("spec.networks[0].name", INVALID)]


def test_no_two_devices_have_the_same_place_in_the_boot_order() -> None:
    devices = {"disks": [{"name": "root", "bootOrder": 1}], "interfaces": [{"name": "net", "bootOrder": 1}]}
    document = _instance({"devices": devices}, volumes=[ROOT], networks=[{"name": "net", "pod": {}}])
    assert _found(document) == [("spec.domain.devices.interfaces[0].bootOrder", DUPLICATE)]


@pytest.mark.parametrize("amount", ["0", 0, "-1Gi", "much", ""])
def test_memory_must_be_an_amount_above_zero(amount: Any) -> None:
    assert _found(_instance({"memory": {"guest": amount}})) == [("spec.domain.memory.guest", INVALID)]
    assert _found(_instance({"resources": {"requests": {"memory": amount}}})) == [
        ("spec.domain.resources.requests.memory", INVALID)
    ]


def test_nothing_is_above_its_limit() -> None:
    resources = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    assert _found(_instance({"memory": {"guest": "3Gi"}, "resources": resources})) == [
        ("spec.domain.resources.requests[cpu]", INVALID),
        ("spec.domain.resources.requests[memory]", INVALID),
        ("spec.domain.memory.guest", INVALID),
    ]


@pytest.mark.parametrize("kind", ["cloudInitNoCloud", "cloudInitConfigDrive"])
def test_a_seed_must_hold_data_in_the_form_it_says(kind: str) -> None:
    assert _found(_instance(volumes=[{"name": "seed", kind: {}}])) == [(f"spec.volumes[0].{kind}", REQUIRED)]
    plain = {"name": "seed", kind: {"userDataBase64": "#cloud-config"}}
    assert _found(_instance(volumes=[plain])) == [(f"spec.volumes[0].{kind}.userDataBase64", INVALID)]
    folded = {"name": "seed", kind: {"userDataBase64": "I2Nsb3Vk\nLWNvbmZpZw=="}}
    assert _found(_instance(volumes=[folded])) == []


def test_an_empty_disk_has_a_size() -> None:
    assert _found(_instance(volumes=[{"name": "a", "emptyDisk": {"capacity": "0"}}])) == [
        ("spec.volumes[0].emptyDisk.capacity", INVALID)
    ]


def test_volumes_that_are_made_must_be_used_and_told_apart() -> None:
    assert _found(_machine([_template("a"), _template("a")], [_uses("a")])) == [
        ("spec.dataVolumeTemplates[1].metadata.name", DUPLICATE)
    ]
    (problem,) = problems_of(_machine([_template("a")], [_uses("b")]))
    assert problem.field == "spec.dataVolumeTemplates[0].metadata.name"
    assert problem.message.startswith('Invalid value: "a": no volume uses it')
    by_claim = {"name": "disk", "persistentVolumeClaim": {"claimName": "a"}}
    assert problems_of(_machine([_template("a")], [by_claim])) == []


REQUIRED_TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def _node_affinity(*terms: Json) -> Json:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def test_rules_about_nodes_are_checked_before_a_pod_is_made() -> None:
    wrong = {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["new"]}]}
    fields = [field for field, _ in _found(_instance(affinity=_node_affinity(wrong)))]
    assert fields
    assert all(field.startswith(f"spec.{REQUIRED_TERMS}[0].matchExpressions[0].values") for field in fields)
    assert _found(_instance(affinity=_node_affinity())) == [(f"spec.{REQUIRED_TERMS}", REQUIRED)]
    assert _found(_instance(nodeSelector={"a b": "c"})) == [("spec.nodeSelector", INVALID)]


def test_rules_about_neighbours_are_checked_too() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    found = _found(_instance(affinity={"podAntiAffinity": {name: [term]}}))
    assert found == [(f"spec.affinity.podAntiAffinity.{name}[0].labelSelector.matchExpressions[0].values", REQUIRED)]


@pytest.mark.parametrize(
    ("toleration", "field"),
    [
        ({}, "operator"),
        ({"key": "a", "operator": "Exists", "value": "b"}, "value"),
        ({"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}, "effect"),
    ],
)
def test_a_toleration_must_make_sense(toleration: Json, field: str) -> None:
    assert _found(_instance(tolerations=[toleration])) == [(f"spec.tolerations[0].{field}", INVALID)]


def test_a_claim_says_how_large_it_is_unless_it_is_a_copy() -> None:
    assert _found(_data_volume(source={"blank": {}}, pvc={})) == [
        ("spec.pvc.accessModes", REQUIRED),
        ("spec.pvc.resources.requests.storage", REQUIRED),
    ]
    assert _found(_data_volume(source={"blank": {}}, storage={})) == [("spec.storage.resources.requests.storage", REQUIRED)]
    assert _found(_data_volume(source={"pvc": {"name": "b"}}, storage={})) == []
    none = {"resources": {"requests": {"storage": "0"}}}
    assert _found(_data_volume(source={"blank": {}}, storage=none)) == [("spec.storage.resources.requests.storage", INVALID)]


@pytest.mark.parametrize("url", ["http:///disk", "https://[::1/disk"])
def test_an_image_is_fetched_from_a_host(url: str) -> None:
    assert _found(_data_volume(source={"http": {"url": url}}, pvc=CLAIM)) == [("spec.source.http.url", INVALID)]
