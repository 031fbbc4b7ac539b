from typing import Any

from herder.server.builtin_schemas import components, schema_for
from herder.server.schema import Schema, compile_schema

POD = compile_schema(schema_for("", "v1", "Pod"), components())


def custom(properties: dict[str, Any]) -> Schema:
    return compile_schema({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})


def test_unknown_fields_of_a_built_in_kind_are_named_in_document_order():
    pod = {"kind": "Pod", "zz": 1, "spec": {"containers": [{"name": "a"}, {"name": "b", "imgae": "x"}], "foo": {"bar": 1}}}
    assert POD.unknown_fields(pod) == ["spec.containers[1].imgae", "spec.foo", "zz"]


def test_unknown_fields_of_a_custom_resource_are_sorted_and_its_metadata_is_looked_into():
    schema = custom({"a": {"type": "integer"}})
    assert schema.unknown_fields({"zz": 1, "spec": {"b": 1}, "metadata": {"odd": 1}}) == ["metadata.odd", "spec.b", "zz"]


def test_the_nearest_known_name_is_suggested():
    assert POD.did_you_mean("spec.containers[1].imgae") == "spec.containers[1].image"
    assert POD.did_you_mean("spec.Containers") == "spec.containers"
    assert POD.did_you_mean("spec.xyzzy") is None
    assert POD.did_you_mean("spec.nowhere.at.all") is None


def test_pruning_drops_what_is_unknown_at_every_depth():
    schema = custom({"list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}})
    obj = {"spec": {"list": [{"a": "x", "b": 1}], "c": {}}, "metadata": {"name": "n", "odd": 1}}
    schema.prune(obj)
    assert obj == {"spec": {"list": [{"a": "x"}]}, "metadata": {"name": "n"}}


def test_what_is_preserved_stays_while_known_parts_inside_are_still_pruned():
    known = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schema = custom({"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": known}}})
    obj = {"spec": {"free": {"x": {"y": [{"z": 1}]}, "known": {"a": 1, "b": 2}}}}
    assert schema.unknown_fields(obj) == ["spec.free.known.b"]
    schema.prune(obj)
    assert obj == {"spec": {"free": {"x": {"y": [{"z": 1}]}, "known": {"a": 1}}}}


def test_an_object_without_properties_keeps_nothing_in_a_custom_resource_and_everything_in_a_built_in_kind():
    schema = custom({"empty": {"type": "object"}})
    obj = {"spec": {"empty": {"a": 1}}}
    schema.prune(obj)
    assert obj == {"spec": {"empty": {}}}
    revision = compile_schema(schema_for("apps", "v1", "ControllerRevision"), components())
    assert revision.unknown_fields({"data": {"anything": {"at": ["all"]}}}) == []


def test_maps_keep_their_keys_and_their_values_are_pruned():
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = custom({"map": {"type": "object", "additionalProperties": inner}})
    obj = {"spec": {"map": {"any": {"a": "x", "b": "y"}}}}
    assert schema.unknown_fields(obj) == ["spec.map.any.b"]
    schema.prune(obj)
    assert obj == {"spec": {"map": {"any": {"a": "x"}}}}


def test_a_resource_inside_of_a_resource_has_metadata_of_its_own():
    schema = custom(
        {"inner": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}}
    )
    obj = {"spec": {"inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "odd": 1}, "spec": {"x": 1}}}}
    assert schema.unknown_fields(obj) == ["spec.inner.metadata.odd"]
    schema.prune(obj)
    assert obj["spec"]["inner"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}}


def test_a_schema_that_contains_itself_is_followed_to_the_end():
    schema = compile_schema(schema_for("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), components())
    deep = {"properties": {"a": {"properties": {"b": {"nott": {}}}}}}
    obj = {"spec": {"versions": [{"schema": {"openAPIV3Schema": deep}}]}}
    assert schema.unknown_fields(obj) == ["spec.versions[0].schema.openAPIV3Schema.properties.a.properties.b.nott"]
