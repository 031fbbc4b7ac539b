"""What is made for an object that was admitted is valid itself: instances of machines, disks, claims, and what evacuations make."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herder.api import builtin, names
from herder.api.builtin.objectmeta import validate_meta
from herder.api.core import PersistentVolume, StorageClass
from herder.api.kinds import DataVolume
from herder.api.problems import Problem
from herder.api.registry import DATA_VOLUME, INSTANCE, MACHINE
from herder.api.validation import problems_of
from herder.rules.evacuation import budget_name
from herder.rules.instances.launcher import pod_name
from herder.rules.machines.children import data_volumes_of, instance_of
from herder.rules.volumes.claims import claim_of
from herder.rules.volumes.importer import importer_pod
from tests.examples import examples
from tests.unit.api.validation.judging import Json, completed, document, refused, schema_problems

UID = "0c6f6bd6-0000-4000-8000-000000000001"
TEXT = st.sampled_from(["a", "a b", "", "a/b", "a/b/c", "ü", "a\0b", "-", "x" * 64, "x" * 300]) | st.text(max_size=8)
META = st.fixed_dictionaries(
    {}, optional={"labels": st.dictionaries(TEXT, TEXT, max_size=2), "annotations": st.dictionaries(TEXT, TEXT, max_size=2)}
)
SIZE = st.sampled_from(["1Gi", "0", "64m", "1", "1e400", "9999999Ei", "x", 5, -1])
CLAIM = st.fixed_dictionaries(
    {},
    optional={
        "accessModes": st.lists(st.sampled_from(["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"]), max_size=2),
        "resources": st.fixed_dictionaries({}, optional={"requests": st.fixed_dictionaries({}, optional={"storage": SIZE})}),
        "storageClassName": TEXT,
        "volumeName": TEXT,
        "selector": st.fixed_dictionaries({"matchLabels": st.dictionaries(TEXT, TEXT, max_size=1)}),
    },
)
SOURCE = st.sampled_from([{"blank": {}}, {"pvc": {"name": "golden"}}]) | st.fixed_dictionaries(
    {
        "http": st.fixed_dictionaries(
            {"url": st.just("https://a/b") | TEXT}, optional={"secretRef": TEXT, "extraHeaders": st.lists(TEXT, max_size=2)}
        )
    }
)
DISK = st.fixed_dictionaries({"source": SOURCE}, optional={"pvc": CLAIM, "storage": CLAIM, "priorityClassName": TEXT})
PATIENT = settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def metadata_problems(obj: Json) -> list[Problem]:
    problems: list[Problem] = []
    validate_meta({"uid": UID, **obj["metadata"]}, True, names.name_is_subdomain, problems, custom=True)
    return problems


def problems_of_builtin(kind: str, obj: Json) -> list[str]:
    whole: Json = msgspec.json.decode(msgspec.json.encode({"apiVersion": "v1", "kind": kind, **obj}))
    sentence = builtin.conform("", kind, whole)
    builtin.default("", kind, whole)
    return [sentence] if sentence else [str(one) for one in builtin.validate_create("", kind, whole)]


def problems_of_child(info: Any, obj: Json) -> list[str]:
    whole = completed(info, {"apiVersion": info.api_version, "kind": info.kind, **obj})
    return [str(one) for one in (*metadata_problems(whole), *(schema_problems(info, whole) or problems_of(whole)))]


@given(template=META, disk=META, name=st.sampled_from(["web", "a.b", "x" * 63, "x" * 64]))
@PATIENT
def test_the_instance_and_the_disks_of_a_machine_that_is_admitted_are_admitted(template: Json, disk: Json, name: str) -> None:
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "running": True,
        "template": {"metadata": template, "spec": {"domain": {}, "volumes": [{"name": "root", "dataVolume": {"name": "root"}}]}},
        "dataVolumeTemplates": [{"metadata": {"name": "root", **disk}, "spec": {"source": {"blank": {}}, "storage": size}}],
    }
    if refused(MACHINE, spec, name=name):
        return
    machine = completed(MACHINE, document(MACHINE, spec, name, uid=UID))
    assert problems_of_child(INSTANCE, instance_of(machine)) == []
    assert [problems_of_child(DATA_VOLUME, one) for one in data_volumes_of(machine)] == [[]]


@given(spec=DISK)
@PATIENT
def test_the_claim_and_the_importer_of_a_disk_that_is_admitted_are_valid(spec: Json) -> None:
    if refused(DATA_VOLUME, spec):
        return
    obj = document(DATA_VOLUME, spec, "disk", uid=UID)
    view = msgspec.convert(obj, DataVolume)
    chosen = msgspec.convert({"metadata": {"name": "herder-local"}, "provisioner": "herder.dev/local"}, StorageClass)
    assert problems_of_builtin("PersistentVolumeClaim", claim_of(obj, view, chosen, "1Gi", "")) == []
    target = msgspec.convert({"metadata": {"name": "pvc-1"}, "spec": {"capacity": {"storage": "1Gi"}}}, PersistentVolume)
    assert problems_of_builtin("Pod", importer_pod(obj, view, target, target, 0)) == []


@pytest.mark.parametrize("length", [199, 200, 201, 219, 220, 221])
@pytest.mark.parametrize("letter", ["-", "."])
def test_names_that_are_cut_short_are_still_names(length: int, letter: str) -> None:
    name = "a" * (length - 1) + letter + "a" * (253 - length)
    assert not names.dns_subdomain(name)
    for made in (pod_name(name, UID), budget_name(name)):
        assert not names.dns_subdomain(made), made


def test_more_headers_than_fit_into_an_annotation_are_refused() -> None:
    headers = [f"X-{number}: {'y' * 4000}" for number in range(64)]
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    (said,) = refused(DATA_VOLUME, {"source": {"http": {"url": "https://a/b", "extraHeaders": headers}}, "storage": size})
    assert said.startswith("spec: Invalid value: ")
    assert "use fewer or shorter headers" in said
