from typing import Any

from herder.api.problems import DUPLICATE, FORBIDDEN, INVALID, REQUIRED, Problem
from herder.server.schema import Schema, compile_schema

INTEGER = {"type": "integer"}


def custom(spec: dict[str, Any]) -> Schema:
    return compile_schema({"type": "object", "properties": {"spec": {"type": "object", **spec}}})


def ruled(*rules: dict[str, Any], **properties: Any) -> Schema:
    return custom({"properties": properties or {"n": INTEGER}, "x-kubernetes-validations": list(rules)})


def problems_of(schema: Schema, new: Any, old: Any = None) -> list[Problem]:
    def obj(spec: Any) -> dict[str, Any]:
        return {"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec}

    return schema.validate(obj(new), None if old is None else obj(old))


def test_a_rule_about_a_change_runs_only_when_there_is_something_to_compare():
    schema = ruled({"rule": "self.n >= oldSelf.n", "message": "must not shrink"})
    assert problems_of(schema, {"n": 1}) == []
    assert problems_of(schema, {"n": 2}, {"n": 1}) == []
    assert problems_of(schema, {"n": 1}, {"n": 2}) == [Problem("spec", INVALID, "Invalid value: must not shrink")]


def test_a_rule_about_a_change_may_ask_to_run_always():
    schema = ruled({"rule": "oldSelf.hasValue() || self.n == 0", "optionalOldSelf": True, "message": "must start at 0"})
    assert [one.message for one in problems_of(schema, {"n": 1})] == ["Invalid value: must start at 0"]
    assert problems_of(schema, {"n": 1}, {"n": 0}) == []


def test_items_of_a_list_are_compared_with_the_item_of_the_same_key():
    number = {**INTEGER, "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    item = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "n": number}}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    schema = custom({"properties": {"l": keyed}})
    old = {"l": [{"k": "a", "n": 5}, {"k": "b", "n": 1}]}
    assert problems_of(schema, {"l": [{"k": "b", "n": 2}, {"k": "c", "n": 0}, {"k": "a", "n": 5}]}, old) == []
    (problem,) = problems_of(schema, {"l": [{"k": "b", "n": 1}, {"k": "a", "n": 4}]}, old)
    assert (problem.field, problem.message) == ("spec.l[1].n", "Invalid value: 4: failed rule: self >= oldSelf")


def test_a_field_path_and_a_reason_say_where_and_how():
    path = {"rule": "false", "message": "m", "fieldPath": ".n"}
    assert problems_of(ruled(path), {"n": 1}) == [Problem("spec.n", INVALID, "Invalid value: m")]
    for reason, message in ((FORBIDDEN, "Forbidden: m"), (REQUIRED, "Required value: m"), (DUPLICATE, "Duplicate value")):
        assert problems_of(ruled({"rule": "false", "message": "m", "reason": reason}), {"n": 1}) == [
            Problem("spec", reason, message)
        ]


def test_a_message_may_be_computed_and_falls_back_where_it_cannot():
    words = {"rule": "false", "messageExpression": "'is ' + string(self.n)", "message": "plain"}
    assert problems_of(ruled(words), {"n": 7})[0].message == "Invalid value: is 7"
    assert problems_of(ruled(words), {})[0].message == "Invalid value: plain"
    assert problems_of(ruled({**words, "messageExpression": "'two\\nlines'"}), {"n": 7})[0].message == "Invalid value: plain"


def test_rules_wait_until_types_and_required_fields_are_right():
    schema = custom({"required": ["n"], "properties": {"n": INTEGER}, "x-kubernetes-validations": [{"rule": "self.n > 5"}]})
    first, second = problems_of(schema, {})
    assert first == Problem("spec.n", REQUIRED, "Required value")
    assert second.message.startswith("Invalid value: null: some validation rules were not checked")


def test_what_was_wrong_before_and_did_not_change_is_left_alone():
    schema = ruled({"rule": "self.n < 5"}, n={**INTEGER, "maximum": 3}, other=INTEGER)
    assert problems_of(schema, {"n": 9}, {"n": 9}) == []
    assert [one.field for one in problems_of(schema, {"n": 9, "other": 1}, {"n": 9})] == ["spec"]
    assert [one.field for one in problems_of(schema, {"n": 10}, {"n": 9})] == ["spec.n", "spec"]


def test_a_tightened_limit_blocks_nobody_who_does_not_touch_the_field():
    schema = custom({"properties": {"n": {**INTEGER, "maximum": 3}, "other": INTEGER}})
    assert problems_of(schema, {"n": 9, "other": 2}, {"n": 9, "other": 1}) == []
    assert [one.field for one in problems_of(schema, {"n": 8}, {"n": 9})] == ["spec.n"]


def test_rules_at_the_root_see_the_name_and_nothing_else_of_the_metadata():
    schema = compile_schema({"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('a')"}]})
    obj: dict[str, Any] = {"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "b"}}
    assert [one.field for one in schema.validate(obj)] == ["<nil>"]
    obj["metadata"]["name"] = "a"
    assert schema.validate(obj) == []


def test_rules_on_values_of_maps_and_in_all_of_run():
    value = {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'bad'"}]}
    schema = custom({"properties": {"m": {"type": "object", "additionalProperties": value}}})
    assert [one.field for one in problems_of(schema, {"m": {"x": "good", "y": "bad"}})] == ["spec.m[y]"]
