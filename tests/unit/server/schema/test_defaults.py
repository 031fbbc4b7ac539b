from typing import Any

from herder.server.builtin_schemas import components, schema_for
from herder.server.schema import Schema, compile_schema


def custom(properties: dict[str, Any]) -> Schema:
    return compile_schema({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})


def filled(schema: Schema, spec: Any) -> Any:
    obj = {"spec": spec}
    schema.apply_defaults(obj)
    return obj["spec"]


NESTED = {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 7}}}


def test_what_is_missing_gets_its_default_and_what_is_there_stays():
    schema = custom({"a": {"type": "integer", "default": 3}, "b": {"type": "integer"}})
    assert filled(schema, {}) == {"a": 3}
    assert filled(schema, {"a": 0}) == {"a": 0}


def test_defaults_are_filled_inside_of_defaults():
    assert filled(custom({"outer": NESTED}), {}) == {"outer": {"x": 7}}


def test_nothing_is_invented_above_a_default():
    inner = {"type": "object", "properties": {"x": {"type": "integer", "default": 7}}}
    assert filled(custom({"outer": inner}), {}) == {}


def test_a_null_that_is_not_allowed_becomes_the_default_or_goes():
    schema = custom({"a": {"type": "integer", "default": 3}, "b": {"type": "integer"}, "c": {"type": "integer", "nullable": True}})
    assert filled(schema, {"a": None, "b": None, "c": None}) == {"a": 3, "c": None}


def test_items_of_lists_and_values_of_maps_are_filled():
    schema = custom({"list": {"type": "array", "items": NESTED}, "map": {"type": "object", "additionalProperties": NESTED}})
    assert filled(schema, {"list": [{}, {"x": 1}], "map": {"k": {}}}) == {"list": [{"x": 7}, {"x": 1}], "map": {"k": {"x": 7}}}


def test_two_objects_never_share_a_default():
    schema = custom({"a": {"type": "array", "items": {"type": "string"}, "default": ["x"]}})
    first, second = filled(schema, {}), filled(schema, {})
    first["a"].append("y")
    assert second == {"a": ["x"]}
    assert filled(schema, {}) == {"a": ["x"]}


def test_metadata_and_built_in_kinds_are_left_alone():
    obj: dict[str, Any] = {"metadata": {"ownerReferences": [{}]}}
    custom({}).apply_defaults(obj)
    assert obj == {"metadata": {"ownerReferences": [{}]}}
    pod: dict[str, Any] = {"spec": {"containers": [{}]}}
    compile_schema(schema_for("", "v1", "Pod"), components()).apply_defaults(pod)
    assert pod == {"spec": {"containers": [{}]}}
