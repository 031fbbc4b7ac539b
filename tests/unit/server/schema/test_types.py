"""Sentences of Go's decoder, which people search for."""

from typing import Any

import pytest

from herder.server.builtin_schemas import components, schema_for
from herder.server.schema import compile_schema

POD = compile_schema(schema_for("", "v1", "Pod"), components())
FIELD = "json: cannot unmarshal {} into Go struct field {} of type {}"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"terminationGracePeriodSeconds": "x"}, FIELD.format("string", "PodSpec.spec.terminationGracePeriodSeconds", "int64")),
        ({"containers": {}}, FIELD.format("object", "PodSpec.spec.containers", "[]v1.Container")),
        ({"containers": [{"image": 1}]}, FIELD.format("number", "Container.spec.containers.image", "string")),
        ({"containers": [{"tty": "yes"}]}, FIELD.format("string", "Container.spec.containers.tty", "bool")),
        ({"nodeSelector": {"a": 1}}, FIELD.format("number", "PodSpec.spec.nodeSelector", "string")),
        ({"nodeSelector": []}, FIELD.format("array", "PodSpec.spec.nodeSelector", "map[string]string")),
        ({"priority": 2**31}, FIELD.format("number 2147483648", "PodSpec.spec.priority", "int32")),
        ({"priority": 1.5}, FIELD.format("number 1.5", "PodSpec.spec.priority", "int32")),
    ],
    ids=str,
)
def test_a_wrong_type_is_told_as_go_tells_it(spec: dict[str, Any], sentence: str):
    assert POD.type_errors({"spec": spec}) == [sentence]


def test_a_quantity_that_is_none_is_told():
    wrong = {"spec": {"containers": [{"resources": {"limits": {"cpu": "lots"}}}]}}
    assert POD.type_errors(wrong) == ["quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"]


def test_null_and_numbers_where_quantities_stand_are_fine():
    assert POD.type_errors({"spec": {"containers": [{"image": None, "resources": {"limits": {"cpu": 2}}}]}}) == []


def test_of_a_custom_resource_only_the_metadata_is_decoded():
    schema = compile_schema(
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
    )
    assert schema.type_errors({"metadata": {"labels": {"a": 1}}, "spec": {"n": "x"}}) == [
        FIELD.format("number", "ObjectMeta.metadata.labels", "string")
    ]
