"""The schemas of our kinds: complete, structural, and of one mind with the views they are made from."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from herder.api.registry import KINDS, POOL, KindInfo
from herder.api.schemas import schema_of, schema_of_kind
from herder.api.views import VALIDATIONS, Rule, View, at_most_one, exactly_one, unchanging
from herder.server.schema import check_schema, compile_schema
from tests.samples import sample

Json = dict[str, Any]
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
every_kind = pytest.mark.parametrize("info", KINDS, ids=lambda info: info.kind)


def _walk(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _walk(child, f"{path}.{name}")
    for name, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(name), dict):
            yield from _walk(schema[name], path + mark)


@every_kind
def test_every_field_says_what_it_is_for(info: KindInfo) -> None:
    silent = [
        path
        for path, schema in _walk(schema_of_kind(info.view))
        if not path.endswith((".*", "[]")) and path != ".metadata" and len(schema.get("description", "")) < 4
    ]
    assert silent == []


@every_kind
def test_every_node_has_a_type_or_a_mark_that_it_has_none(info: KindInfo) -> None:
    for path, schema in _walk(schema_of_kind(info.view)):
        marked = bool(schema.get(INT_OR_STRING) or (schema.get(PRESERVE) and "properties" not in schema))
        assert ("type" in schema) != marked or schema.get("type") == "object", path
        assert "$ref" not in schema, path


@every_kind
def test_keyed_lists_require_their_keys(info: KindInfo) -> None:
    for path, schema in _walk(schema_of_kind(info.view)):
        keys = schema.get("x-kubernetes-list-map-keys", [])
        assert set(keys) <= set(schema.get("items", {}).get("required", [])), path
        assert ("x-kubernetes-list-type" in schema) == (schema.get("type") == "array"), path


@every_kind
def test_conditions_are_keyed_by_type_so_that_several_writers_can_share_them(info: KindInfo) -> None:
    conditions = schema_of_kind(info.view)["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


@every_kind
def test_lists_above_a_rule_are_bounded_so_that_rules_stay_cheap(info: KindInfo) -> None:
    schemas = dict(_walk(schema_of_kind(info.view)))
    ruled = [path for path, schema in schemas.items() if VALIDATIONS in schema]
    lists = {path[: at + 1] for path in ruled for at in range(len(path)) if path[at : at + 2] == "[]"}
    unbounded = [path for path in lists if "maxItems" not in schemas[path.rstrip("[")]]
    assert unbounded == []


@every_kind
def test_every_rule_can_be_compiled(info: KindInfo) -> None:
    assert check_schema(schema_of_kind(info.view)) == []
    rules = [rule for _, schema in _walk(schema_of_kind(info.view)) for rule in schema.get(VALIDATIONS, [])]
    assert all(rule["message"] for rule in rules)


@every_kind
def test_status_is_observed_for_a_generation(info: KindInfo) -> None:
    assert "observedGeneration" in schema_of_kind(info.view)["properties"]["status"]["properties"]


@every_kind
def test_a_view_reads_and_writes_every_field_of_its_schema(info: KindInfo) -> None:
    document = sample({**schema_of_kind(info.view)})
    document["metadata"] = {"name": "a"}
    view = msgspec.convert(document, info.view)
    written = msgspec.to_builtins(view, str_keys=True)
    assert _without_none(written) == document


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_without_none(one) for one in value]
    return value


@every_kind
def test_a_view_defaults_to_nothing(info: KindInfo) -> None:
    """A default with a value would be lost again when the view is written."""
    seen: set[type] = set()

    def check(view: type) -> None:
        if view in seen:
            return
        seen.add(view)
        for field in msgspec.structs.fields(view):
            assert field.required or field.default is None, f"{view.__name__}.{field.name}"
        for one in msgspec.inspect.multi_type_info([view]):
            for struct in _structs(one):
                check(struct)

    check(info.view)
    assert len(seen) > 3


def _structs(info: Any) -> Iterator[type]:
    for name in ("types", "fields"):
        for one in getattr(info, name, ()):
            yield from _structs(getattr(one, "type", one))
    for name in ("type", "item_type", "value_type"):
        if hasattr(info, name):
            yield from _structs(getattr(info, name))
    if isinstance(info, msgspec.inspect.StructType):
        yield info.cls


def test_what_must_be_kept_whole_is_left_open() -> None:
    schemas = dict(_walk(schema_of_kind(next(info.view for info in KINDS if info.kind == "Reservation"))))
    assert schemas[".spec.template.spec"][PRESERVE] is True
    assert schemas[".spec.template.spec.containers[]"][PRESERVE] is True


def _broken(rule: Rule, new: Json, old: Json | None = None) -> list[str]:
    """What an object says that breaks the rule."""
    spec = {"type": "object", "properties": {name: {"type": "integer"} for name in "ab"}, VALIDATIONS: [rule.schema()]}
    schema = compile_schema({"type": "object", "properties": {"spec": spec}})
    return [problem.message for problem in schema.validate({"spec": new}, None if old is None else {"spec": old})]


@pytest.mark.parametrize(("present", "one", "most"), [((), False, True), (("a",), True, True), (("a", "b"), False, False)])
def test_one_of_rules_count_what_is_there(present: tuple[str, ...], one: bool, most: bool) -> None:
    document = dict.fromkeys(present, 1)
    assert (_broken(exactly_one("a", "b"), document) == []) is one
    assert (_broken(at_most_one("a", "b"), document) == []) is most
    for message in _broken(exactly_one("a", "b"), document):
        assert message.endswith("must have exactly one of a, b, but has " + (f"these: {' '.join(present)}" if present else "none"))


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [({}, {}, True), ({"a": 1}, {"a": 1}, True), ({"a": 1}, {}, False), ({}, {"a": 1}, False), ({"a": 1}, {"a": 2}, False)],
)
def test_an_unchanging_field_is_neither_changed_nor_added_nor_removed(new: Json, old: Json, same: bool) -> None:
    assert (_broken(unchanging("a", "do without"), new, old) == []) is same


def test_a_type_that_no_schema_can_state_is_an_error() -> None:
    class Odd(View, frozen=True, kw_only=True):
        """Odd."""

        value: bytes

    with pytest.raises(TypeError, match="no schema can be made of"):
        schema_of(Odd)


def test_what_a_user_left_out_of_a_pool_stays_left_out() -> None:
    assert [path for path, schema in _walk(schema_of_kind(POOL.view)) if "default" in schema] == []


def test_a_pool_that_an_older_version_stored_is_read() -> None:
    """Then the schema wrote these defaults into the spec."""
    machine = {"running": False, "template": {"spec": {"domain": {}}}}
    spec = {
        "replicas": 3,
        "maxUnavailable": "25%",
        "nameGeneration": {"appendPostfixToSecretReferences": False, "appendPostfixToConfigMapReferences": False},
        "autohealing": {"startupFailureThreshold": 3},
        "template": {"spec": machine},
    }
    status = {
        "replicas": 3,
        "readyReplicas": 1,
        "detached": ["a-1"],
        "labelSelector": "herder.dev/pool=a",
        "currentRevision": "a-1",
    }
    stored = {"apiVersion": "kubevirt.io/v1", "kind": POOL.kind, "metadata": {"name": "a"}, "spec": spec, "status": status}
    assert _without_none(msgspec.to_builtins(msgspec.convert(stored, POOL.view))) == stored
    assert compile_schema(schema_of_kind(POOL.view)).validate(stored) == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [("spec.replicaz", "spec.replicas"), ("spec.AutoHealing", "spec.autohealing"), ("spec.maxUnavailble", "spec.maxUnavailable")],
)
def test_a_hint_is_never_at_a_field_that_is_refused(written: str, meant: str) -> None:
    assert compile_schema(schema_of_kind(POOL.view)).did_you_mean(written) == meant
