import pytest

from herder.server.builtin_schemas import component_name, components, schema_for
from herder.server.schema import compile_schema

KINDS = [
    (one["group"], one["version"], one["kind"])
    for schema in components().values()
    for one in schema.get("x-kubernetes-group-version-kind", ())
]


@pytest.mark.parametrize(("group", "version", "kind"), KINDS)
def test_every_kind_has_a_schema_that_compiles_and_accepts_its_own_type(group: str, version: str, kind: str):
    schema = compile_schema(schema_for(group, version, kind), components())
    api_version = f"{group}/{version}" if group else version
    assert schema.unknown_fields({"apiVersion": api_version, "kind": kind}) == []
    assert schema.unknown_fields({"nonsense": 1}) == ["nonsense"]


def test_kinds_are_found_by_group_version_and_kind():
    assert component_name("", "v1", "Pod") == "io.k8s.api.core.v1.Pod"
    assert component_name("apps", "v1", "Pod") is None
    with pytest.raises(KeyError):
        schema_for("", "v1", "Nonsense")


def test_there_are_no_sentences_in_it_while_fields_called_description_stay():
    def sentences(value: object) -> list[str]:
        if isinstance(value, dict):
            own = [value["description"]] if isinstance(value.get("description"), str) else []
            return own + [one for inner in value.values() for one in sentences(inner)]
        return [one for inner in value for one in sentences(inner)] if isinstance(value, list) else []

    assert sentences(components()) == []
    assert "description" in components()["io.k8s.api.scheduling.v1.PriorityClass"]["properties"]


def test_list_keys_and_patch_strategies_came_along():
    containers = components()["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
