"""The entries that kube-apiserver wrote for these objects were written down; ours are the same."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.server.builtin_schemas import components, schema_for
from herder.server.fields import FieldManager, managed_fields_after_create, managed_fields_after_update, reset_fields
from herder.server.schema import compile_schema

REAL = msgspec.json.decode(Path(__file__).with_name("kubernetes_entries.json").read_bytes())
NOW = "2024-01-01T00:00:00Z"


def manager_for(group: str, version: str, kind: str) -> FieldManager:
    if group == "ex.io":
        return FieldManager(compile_schema(REAL["schema"]))
    return FieldManager(compile_schema(schema_for(group, version, kind), components()))


def timed(entries: list[dict[str, Any]], manager: str) -> str:
    """When the manager wrote, according to the entries; some writes leave none."""
    times = [entry.get("time", "") for entry in entries if entry["manager"] == manager]
    return times[0] if times else NOW


@pytest.mark.parametrize("case", REAL["creates"], ids=lambda case: case["kind"])
def test_creating_an_object_gives_its_fields_to_who_created_it(case: dict[str, Any]):
    group, kind = case["group"], case["kind"]
    reset = reset_fields(group, kind, "", has_status=case["status"], builtin=group != "ex.io")
    fields = manager_for(group, case["version"], kind)
    now = timed(case["managedFields"], "me")
    assert managed_fields_after_create(case["object"], fields, "me", now, reset=reset) == case["managedFields"]
    encoded = managed_fields_after_create(case["object"], fields, "me", now, reset=reset, encoded=True)
    assert msgspec.json.decode(msgspec.json.encode(encoded)) == case["managedFields"]


@pytest.mark.parametrize("case", REAL["updates"], ids=lambda case: f"{case['kind']} by {case['manager']}")
def test_updating_an_object_moves_what_changed_to_who_changed_it(case: dict[str, Any]):
    group, kind, subresource = case["group"], case["kind"], case["subresource"]
    reset = reset_fields(group, kind, subresource, has_status=True, builtin=not case["custom"])
    found = managed_fields_after_update(
        case["old"],
        case["new"],
        manager_for(group, case["version"], kind),
        case["manager"],
        timed(case["managedFields"], case["manager"]),
        subresource=subresource,
        reset=reset,
    )
    assert found == case["managedFields"]


def config(data: dict[str, str], **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **meta}, "data": data}


CONFIG = manager_for("", "v1", "ConfigMap")


def test_fields_are_sorted_and_managers_without_a_name_are_unknown():
    (entry,) = managed_fields_after_create(config({"b": "1", "a": "2"}), CONFIG, "", NOW)
    assert msgspec.json.encode(entry["fieldsV1"]) == b'{"f:data":{".":{},"f:a":{},"f:b":{}}}'
    assert entry["manager"] == "unknown"


def test_an_object_of_a_name_alone_has_no_owner():
    assert (
        managed_fields_after_create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, CONFIG, "me", NOW) == []
    )


def test_an_update_that_changes_nothing_leaves_the_entries_and_their_times():
    entries = managed_fields_after_create(config({"a": "1"}), CONFIG, "me", NOW)
    old = config({"a": "1"}, managedFields=entries)
    assert managed_fields_after_update(old, config({"a": "1"}), CONFIG, "you", "2025-01-01T00:00:00Z") == entries


def test_who_loses_the_last_field_loses_the_entry():
    old = config({"a": "1"}, managedFields=managed_fields_after_create(config({"a": "1"}), CONFIG, "me", NOW))
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    assert managed_fields_after_update(old, gone, CONFIG, "you", NOW) == []


def test_tracking_given_up_stays_given_up():
    entries = managed_fields_after_create(config({"a": "1"}), CONFIG, "me", NOW)
    old = config({"a": "1"}, managedFields=entries)
    assert managed_fields_after_update(old, config({"a": "2"}, managedFields=[]), CONFIG, "you", NOW) == []
    assert managed_fields_after_update(config({"a": "1"}), config({"a": "2"}), CONFIG, "you", NOW) == []


def test_entries_that_were_kept_encoded_are_read_as_well():
    entries = managed_fields_after_create(config({"a": "1", "b": "1"}), CONFIG, "me", NOW, encoded=True)
    old = config({"a": "1", "b": "1"}, managedFields=entries)
    mine, yours = managed_fields_after_update(old, config({"a": "2", "b": "1"}), CONFIG, "you", NOW)
    assert mine["fieldsV1"] == {"f:data": {".": {}, "f:b": {}}}
    assert yours["fieldsV1"] == {"f:data": {"f:a": {}}}


def test_the_old_object_and_its_entries_are_not_changed():
    entries = managed_fields_after_create(config({"a": "1", "b": "1"}), CONFIG, "me", NOW)
    before = msgspec.json.encode(entries)
    managed_fields_after_update(config({"a": "1", "b": "1"}, managedFields=entries), config({"c": "1"}), CONFIG, "you", NOW)
    assert msgspec.json.encode(entries) == before


def test_what_an_applier_would_own_is_every_field_that_it_names():
    assert CONFIG.field_set(config({"a": "1"}, labels={"x": "y"})) == {
        "f:data": {".": {}, "f:a": {}},
        "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
    }
