"""The cheap yes must be certain: whatever is accepted has no unknown field and no wrong type."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herder.server.builtin_schemas import components, schema_for
from herder.server.schema import Schema, compile_schema
from herder.server.schema.values import check_value
from tests.examples import examples

POD = compile_schema(schema_for("", "v1", "Pod"), components())
SECRET = compile_schema(schema_for("", "v1", "Secret"), components())
WIDGET = compile_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "count": {"type": "integer", "format": "int32"},
                    "name": {"type": "string"},
                    "on": {"type": "boolean", "nullable": True},
                    "ratio": {"type": "number"},
                    "port": {"x-kubernetes-int-or-string": True},
                    "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
                    "map": {"type": "object", "additionalProperties": {"type": "string"}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "any": {"x-kubernetes-preserve-unknown-fields": True},
                    "odd-name": {"type": "string"},
                    "class": {"type": "string"},
                },
            }
        },
    }
)


def pod(**container: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", **container}]}}


def accepts(schema: Schema, obj: Any) -> bool:
    return schema.accepts(msgspec.json.encode(obj))


def test_an_ordinary_pod_is_accepted():
    probe = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3}
    limits = {"limits": {"cpu": "500m", "memory": "1.5Gi", "x": 3}}
    assert accepts(POD, pod(image="i", readinessProbe=probe, resources=limits, command=None))


@pytest.mark.parametrize(
    "container",
    [
        {"imgae": "x"},
        {"image": 3},
        {"ports": {"containerPort": 80}},
        {"ports": [{"containerPort": "80"}]},
        {"ports": [{"containerPort": 2**40}]},
        {"resources": {"limits": {"cpu": "lots"}}},
        {"resources": {"limits": {"cpu": True}}},
        {"tty": "true"},
        {"env": [{"name": "a", "value": 1}]},
    ],
    ids=str,
)
def test_unknown_fields_and_wrong_types_are_not_accepted_and_the_exact_walk_names_them(container: dict[str, Any]):
    assert not accepts(POD, pod(**container))
    assert POD.unknown_fields(pod(**container)) or POD.type_errors(pod(**container))


def test_times_and_base64_are_checked():
    assert accepts(POD, {"metadata": {"creationTimestamp": "2024-02-03T04:05:06Z"}})
    assert not accepts(POD, {"metadata": {"creationTimestamp": "yesterday"}})
    assert accepts(SECRET, {"data": {"a": "aGk=", "b": ""}})
    assert not accepts(SECRET, {"data": {"a": "@@"}})


def test_bytes_that_are_no_json_are_not_accepted():
    assert not POD.accepts(b"{")
    assert not POD.accepts(b"\xff")


def test_a_schema_that_contains_itself_is_left_to_the_exact_walk():
    schema = compile_schema(schema_for("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), components())
    assert not accepts(schema, {"kind": "CustomResourceDefinition"})
    assert schema.unknown_fields({"kind": "CustomResourceDefinition"}) == []


def test_names_that_are_none_in_python_are_fields_like_others():
    assert accepts(WIDGET, {"spec": {"odd-name": "x", "class": "y"}})
    assert not accepts(WIDGET, {"spec": {"odd-name": 1}})


def test_what_may_hold_anything_does_not_keep_an_object_from_being_accepted():
    assert accepts(WIDGET, {"spec": {"free": {"x": [1, {"y": None}]}, "any": [1], "port": "a", "on": None}})
    assert not accepts(WIDGET, {"spec": {"free": 3}})


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("axy"), inner, max_size=2)
)
names = st.sampled_from(["count", "name", "on", "ratio", "port", "list", "map", "free", "any", "odd-name", "wrong"])


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.dictionaries(names, values, max_size=5))
def test_whatever_is_accepted_is_right(spec: dict[str, Any]):
    obj = {"spec": spec}
    if accepts(WIDGET, obj):
        found: list[Any] = []
        check_value(obj, WIDGET.root, "", found)
        assert found == []
        assert WIDGET.unknown_fields(obj) == []
