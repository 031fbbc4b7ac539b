"""What is filled in, set and reset on a write of a built-in kind."""

from __future__ import annotations

from typing import Any

import pytest

from herder.api.builtin import BUILT_IN, conform, default, prepare_for_create, prepare_for_update, qos_class, validate_create
from herder.api.core import CORE_KINDS

from .examples import example, group_and_kind, names_of_examples


def created(obj: dict[str, Any]) -> dict[str, Any]:
    group, kind = group_and_kind(obj)
    assert conform(group, kind, obj) is None
    default(group, kind, obj)
    prepare_for_create(group, kind, obj)
    return obj


def test_every_kind_with_a_view_has_rules() -> None:
    assert set(CORE_KINDS) == BUILT_IN


@pytest.mark.parametrize("name", names_of_examples())
def test_an_ordinary_object_has_no_problems_and_filling_in_twice_changes_nothing(name: str) -> None:
    obj = created(example(name))
    again = created(created(example(name)))
    assert obj == again
    assert validate_create(*group_and_kind(obj), obj) == []


def test_a_pod_gets_what_people_see_in_its_yaml() -> None:
    spec = created(example("pod"))["spec"]
    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["schedulerName"]) == ("Always", "ClusterFirst", "default-scheduler")
    assert (spec["terminationGracePeriodSeconds"], spec["enableServiceLinks"], spec["securityContext"]) == (30, True, {})
    main = spec["containers"][0]
    assert main["imagePullPolicy"] == "Always"
    assert main["ports"] == [{"containerPort": 8080, "name": "http", "protocol": "TCP"}]
    assert main["resources"] == {
        "limits": {"cpu": "500m", "memory": "1536Mi"},
        "requests": {"memory": "1Gi", "cpu": "500m"},
    }
    assert main["livenessProbe"]["httpGet"] == {"port": "http", "path": "/", "scheme": "HTTP"}
    assert main["livenessProbe"]["periodSeconds"] == 10
    assert spec["volumes"][1]["configMap"]["defaultMode"] == 0o644
    assert spec["volumes"][2] == {"name": "tmp", "emptyDir": {}}


def test_a_template_of_pods_gets_fewer_defaults_than_a_pod() -> None:
    spec = created(example("replicaset"))["spec"]["template"]["spec"]
    assert spec["restartPolicy"] == "Always"
    assert "enableServiceLinks" not in spec
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


def test_a_new_pod_is_pending_whatever_its_writer_said() -> None:
    pod = example("pod") | {"status": {"phase": "Running", "podIP": "1.2.3.4"}}
    assert created(pod)["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert pod["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_the_class_of_service_follows_from_requests_and_limits(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"containers": [{"resources": resources}]}) == expected


def test_plain_text_of_a_secret_is_folded_into_its_data() -> None:
    secret = created(example("secret"))
    assert secret["data"] == {"a": "Yg==", "c": "ZA=="}
    assert "stringData" not in secret and secret["type"] == "Opaque"


def test_a_namespace_gets_its_name_as_a_label_and_a_finalizer() -> None:
    namespace = created(example("namespace"))
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}
    assert (namespace["spec"]["finalizers"], namespace["status"]) == (["kubernetes"], {"phase": "Active"})


def test_a_definition_gets_its_other_names_and_remembers_its_storage_version() -> None:
    definition = created(example("definition"))
    assert definition["spec"]["names"]["singular"] == "cow" and definition["spec"]["names"]["listKind"] == "CowList"
    assert definition["spec"]["conversion"] == {"strategy": "None"}
    assert definition["status"]["storedVersions"] == ["v1"]


def test_null_is_the_same_as_absent() -> None:
    pod: dict[str, Any] = {"metadata": {"name": "a", "labels": None}, "spec": {"tolerations": None, "containers": [None]}}
    assert conform("", "Pod", pod) is None
    assert pod == {"metadata": {"name": "a"}, "spec": {"containers": [{}]}}


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"spec": {"containers": {}}}, "json: cannot unmarshal object into field spec.containers of type array"),
        ({"metadata": {"labels": {"a": 1}}}, "json: cannot unmarshal number 1 into field metadata.labels.a of type string"),
        ({"spec": {"overhead": {"cpu": "1x"}}}, "spec.overhead.cpu: quantities must match the regular expression"),
        ({"spec": []}, "json: cannot unmarshal array into field spec of type object"),
        ({"metadata": {"creationTimestamp": "today"}}, 'metadata.creationTimestamp: parsing time "today"'),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_place(document: dict[str, Any], sentence: str) -> None:
    refusal = conform("", "Pod", document)
    assert refusal is not None and refusal.startswith(sentence)


def test_an_update_keeps_the_status_and_counts_changes_of_the_spec() -> None:
    old = created(example("deployment")) | {"status": {"replicas": 3}}
    new = created(example("deployment"))
    prepare_for_update("apps", "Deployment", new, old)
    assert (new["status"], new["metadata"]["generation"]) == ({"replicas": 3}, 1)
    new["spec"]["replicas"] = 5
    prepare_for_update("apps", "Deployment", new, old)
    assert new["metadata"]["generation"] == 2


def test_a_new_storage_version_is_added_to_the_stored_ones() -> None:
    old, new = created(example("definition")), created(example("definition"))
    new["spec"]["versions"][0]["storage"] = False
    new["spec"]["versions"].append({**old["spec"]["versions"][0], "name": "v2"})
    prepare_for_update("apiextensions.k8s.io", "CustomResourceDefinition", new, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]


def test_a_kind_that_is_not_built_in_passes_untouched() -> None:
    cow = {"apiVersion": "farm.example.com/v1", "kind": "Cow", "spec": {"replicas": None}}
    assert conform("farm.example.com", "Cow", cow) is None
    default("farm.example.com", "Cow", cow)
    assert cow["spec"] == {"replicas": None} and validate_create("farm.example.com", "Cow", cow) == []
