"""Rules that people meet: one mistake at a time, and the field and reason they read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from herder.api.builtin import conform, default, prepare_for_create, prepare_for_update, validate_create, validate_update
from herder.api.problems import DUPLICATE, FORBIDDEN, INVALID, NOT_FOUND, NOT_SUPPORTED, REQUIRED, TOO_LONG, Problem

from .examples import example, group_and_kind, spoiled


def stored(obj: dict[str, Any]) -> dict[str, Any]:
    group, kind = group_and_kind(obj)
    assert conform(group, kind, obj) is None
    default(group, kind, obj)
    prepare_for_create(group, kind, obj)
    return obj


def found(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(problem.field, problem.reason) for problem in problems]


@pytest.mark.parametrize(
    ("name", "path", "value", "field", "reason"),
    [
        ("pod", "spec/containers", [], "spec.containers", REQUIRED),
        ("pod", "spec/containers/0/image", None, "spec.containers[0].image", REQUIRED),
        ("pod", "spec/containers/1/name", "main", "spec.containers[1].name", DUPLICATE),
        ("pod", "spec/containers/0/name", "Main", "spec.containers[0].name", INVALID),
        ("pod", "spec/containers/0/resources/requests/cpu", "2", "spec.containers[0].resources.requests", INVALID),
        ("pod", "spec/containers/0/volumeMounts/0/name", "nope", "spec.containers[0].volumeMounts[0].name", NOT_FOUND),
        ("pod", "spec/containers/0/ports/0/containerPort", 70000, "spec.containers[0].ports[0].containerPort", INVALID),
        ("pod", "spec/containers/0/env/0/name", "a=b", "spec.containers[0].env[0].name", INVALID),
        ("pod", "spec/restartPolicy", "Sometimes", "spec.restartPolicy", NOT_SUPPORTED),
        ("pod", "metadata/namespace", None, "metadata.namespace", REQUIRED),
        ("pod", "metadata/annotations", {"a": "x" * 300_000}, "metadata.annotations", TOO_LONG),
        ("deployment", "spec/selector", None, "spec.selector", REQUIRED),
        ("deployment", "spec/template/metadata/labels", {}, "spec.template.metadata.labels", INVALID),
        ("deployment", "spec/replicas", -1, "spec.replicas", INVALID),
        ("deployment", "spec/template/spec/restartPolicy", "Never", "spec.template.spec.restartPolicy", NOT_SUPPORTED),
        ("secret", "data", {"a b": ""}, "data[a b]", INVALID),
        ("configmap", "data", {"a": "x" * 1_100_000}, "[]", TOO_LONG),
        ("claim", "spec/resources", None, "spec.resources[storage]", REQUIRED),
        ("claim", "spec/accessModes", None, "spec.accessModes", REQUIRED),
        ("budget", "spec/maxUnavailable", 1, "spec", INVALID),
        ("priority", "value", 2_000_000_000, "value", FORBIDDEN),
        ("role", "rules/0/verbs", [], "rules[0].verbs", REQUIRED),
        ("definition", "metadata/name", "sheep.farm.example.com", "metadata.name", INVALID),
        ("definition", "spec/versions/0/storage", False, "spec.versions", INVALID),
    ],
)
def test_a_mistake_is_found_at_its_field(name: str, path: str, value: Any, field: str, reason: str) -> None:
    obj = stored(spoiled(example(name), path, value))
    assert (field, reason) in found(validate_create(*group_and_kind(obj), obj))


def test_two_owners_cannot_both_be_in_control() -> None:
    owners = [{"apiVersion": "v1", "kind": "A", "name": str(one), "uid": str(one), "controller": True} for one in (1, 2)]
    obj = stored(spoiled(example("pod"), "metadata/ownerReferences", owners))
    (problem,) = validate_create("", "Pod", obj)
    assert problem.message.endswith('Found "true" in references for A/1 and A/2')


def changed(name: str, path: str, value: Any) -> list[tuple[str, str]]:
    old = stored(example(name))
    new = spoiled(msgspec.json.decode(msgspec.json.encode(old)), path, value)
    group, kind = group_and_kind(old)
    prepare_for_update(group, kind, new, old)
    return found(validate_update(group, kind, new, old))


@pytest.mark.parametrize(
    ("name", "path", "value", "field", "reason"),
    [
        ("pod", "spec/nodeName", "n2", "spec", FORBIDDEN),
        ("pod", "spec/tolerations", [], "spec.tolerations", FORBIDDEN),
        ("pod", "metadata/name", "other", "metadata.name", INVALID),
        ("deployment", "spec/selector/matchLabels/app", "x", "spec.selector", INVALID),
        ("statefulset", "spec/serviceName", "other", "spec", FORBIDDEN),
        ("secret", "type", "other", "type", INVALID),
        ("claim", "spec/accessModes", ["ReadWriteMany"], "spec", FORBIDDEN),
        ("claim", "spec/resources/requests/storage", "1Gi", "spec", FORBIDDEN),
        ("storageclass", "provisioner", "other", "provisioner", INVALID),
        ("rolebinding", "roleRef/name", "other", "roleRef", INVALID),
        ("priority", "value", 5, "value", FORBIDDEN),
        ("definition", "spec/group", "other.example.com", "spec.group", INVALID),
    ],
)
def test_what_is_fixed_cannot_be_changed(name: str, path: str, value: Any, field: str, reason: str) -> None:
    assert (field, reason) in changed(name, path, value)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("pod", "spec/containers/0/image", "web:2"),
        ("pod", "spec/activeDeadlineSeconds", 60),
        ("pod", "metadata/labels/app", "other"),
        ("deployment", "spec/replicas", 7),
        ("statefulset", "spec/template/spec/containers/0/image", "db:2"),
        ("claim", "spec/volumeName", "v1"),
        ("configmap", "data/a.conf", "y"),
        ("node", "spec/unschedulable", True),
    ],
)
def test_what_may_change_changes(name: str, path: str, value: Any) -> None:
    assert changed(name, path, value) == []


def test_a_bound_claim_may_grow_and_may_not_shrink_below_what_it_has() -> None:
    old = stored(example("claim")) | {"status": {"phase": "Bound", "capacity": {"storage": "10Gi"}}}
    bigger = spoiled(stored(example("claim")), "spec/resources/requests/storage", "20Gi")
    prepare_for_update("", "PersistentVolumeClaim", bigger, old)
    assert validate_update("", "PersistentVolumeClaim", bigger, old) == []
    smaller = spoiled(stored(example("claim")), "spec/resources/requests/storage", "5Gi")
    prepare_for_update("", "PersistentVolumeClaim", smaller, old)
    assert found(validate_update("", "PersistentVolumeClaim", smaller, old)) == [("spec.resources.requests.storage", FORBIDDEN)]


def test_an_immutable_config_map_stays_as_it_is() -> None:
    old = stored(example("configmap")) | {"immutable": True}
    new = stored(example("configmap")) | {"data": {"a.conf": "other"}}
    assert found(validate_update("", "ConfigMap", new, old)) == [("immutable", FORBIDDEN), ("data", FORBIDDEN)]


def test_no_finalizer_can_be_added_to_what_is_being_deleted() -> None:
    gone = {"deletionTimestamp": "2026-01-02T03:04:05Z"}
    old, new = stored(example("lease")), stored(example("lease"))
    old["metadata"] |= gone
    new["metadata"] |= gone | {"finalizers": ["a.io/b"]}
    assert found(validate_update("coordination.k8s.io", "Lease", new, old)) == [("metadata.finalizers", FORBIDDEN)]


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({}, "type"),
        ({"type": "array"}, "items"),
        ({"type": "stringy"}, "type"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, "x-kubernetes-preserve-unknown-fields"),
        ({"type": "object", "anyOf": [{"type": "object"}]}, "anyOf[0].type"),
        ({"type": "string", "pattern": "("}, "pattern"),
    ],
)
def test_a_schema_that_is_not_structural_is_refused_at_its_field(schema: dict[str, Any], field: str) -> None:
    obj = stored(spoiled(example("definition"), "spec/versions/0/schema/openAPIV3Schema/properties/extra", schema))
    fields = [problem.field for problem in validate_create("apiextensions.k8s.io", "CustomResourceDefinition", obj)]
    assert fields == [f"spec.validation.openAPIV3Schema.properties[extra].{field}"]
