"""Whole Table and PartialObjectMetadata bodies."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from herder.server.builtins import BUILTINS
from herder.server.tables import (
    IncludeObject,
    partial_metadata,
    partial_object_metadata,
    partial_object_metadata_list,
    printer_for,
    render_stored_table,
    render_table,
)
from herder.server.tables.render import INITIAL_EVENTS_END

NOW = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
PODS = printer_for(next(resource for resource in BUILTINS if resource.plural == "pods"))
LEASES = printer_for(next(resource for resource in BUILTINS if resource.plural == "leases"))


def stored(name: str, **more: Any) -> tuple[bytes, dict[str, Any]]:
    metadata = {"name": name, "labels": {"a": "b"}, "creationTimestamp": "2026-01-02T02:59:15Z", **more}
    # Spaces show whether the stored bytes are passed on as they are.
    raw = msgspec.json.format(msgspec.json.encode({"kind": "Lease", "metadata": metadata, "spec": {}}))
    return raw, msgspec.json.decode(raw)


def table(include: IncludeObject = "Metadata", with_columns: bool = True, **more: Any) -> Any:
    body = render_table(LEASES, [stored("one", **more)], include, {"resourceVersion": "7"}, NOW, with_columns)
    return msgspec.json.decode(body)


def test_a_table_has_the_columns_and_a_row_of_each_object() -> None:
    shown = table()
    assert {key: shown[key] for key in ("kind", "apiVersion", "metadata")} == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7"},
    }
    assert [column["name"] for column in shown["columnDefinitions"]] == ["Name", "Holder", "Age"]
    assert set(shown["columnDefinitions"][0]) == {"name", "type", "format", "description", "priority"}
    assert [row["cells"] for row in shown["rows"]] == [["one", "", "45s"]]


def test_a_row_carries_the_metadata_of_its_object() -> None:
    raw, obj = stored("one")
    assert table()["rows"][0]["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
    assert partial_object_metadata(obj) == msgspec.json.encode(table()["rows"][0]["object"])
    assert msgspec.json.decode(raw) == obj


def test_a_row_carries_the_stored_bytes_when_the_object_is_wanted() -> None:
    raw, obj = stored("one")
    assert b'"object":' + raw in render_table(LEASES, [(raw, obj)], "Object", {}, NOW)
    assert b'"object":' + raw in render_stored_table(LEASES, [raw], "Object", {}, NOW)


def test_a_row_carries_nothing_when_nothing_is_wanted_but_the_end_of_the_initial_events() -> None:
    assert table("None")["rows"][0]["object"] is None
    end = table("None", annotations={INITIAL_EVENTS_END: "true"})
    assert end["rows"][0]["object"]["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}


def test_later_events_of_a_watch_leave_out_the_columns() -> None:
    assert table(with_columns=False)["columnDefinitions"] is None


def test_an_empty_list_is_a_table_without_rows() -> None:
    shown = msgspec.json.decode(render_table(PODS, [], "Metadata", {"resourceVersion": "7"}, NOW))
    assert shown["rows"] == []
    assert len(shown["columnDefinitions"]) == 9


def test_only_pods_that_have_ended_have_row_conditions() -> None:
    pods: list[dict[str, Any]] = [{"metadata": {"name": one}, "status": {"phase": one}} for one in ("Running", "Failed")]
    rows = msgspec.json.decode(render_table(PODS, [(b"{}", pod) for pod in pods], "None", {}, NOW))["rows"]
    assert "conditions" not in rows[0]
    assert [one["type"] for one in rows[1]["conditions"]] == ["Completed"]


@pytest.mark.parametrize("printer", [PODS, LEASES])
@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
def test_a_table_from_stored_bytes_is_the_same_as_one_from_objects(printer: Any, include: IncludeObject) -> None:
    rows = [stored("one"), stored("two", annotations={INITIAL_EVENTS_END: "true"}, uid="u")]
    from_bytes = render_stored_table(printer, [raw for raw, _ in rows], include, {"resourceVersion": "7"}, NOW)
    from_objects = render_table(printer, rows, include, {"resourceVersion": "7"}, NOW)
    assert msgspec.json.decode(from_bytes) == msgspec.json.decode(from_objects)


def test_an_older_form_of_the_table_is_named_so_throughout() -> None:
    body = render_table(LEASES, [stored("one")], "Metadata", {}, NOW, api_version="meta.k8s.io/v1beta1")
    shown = msgspec.json.decode(body)
    assert shown["apiVersion"] == shown["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_a_list_of_metadata_alone_keeps_the_place_in_the_list() -> None:
    raw, obj = stored("one")
    items = [partial_metadata(raw)]
    assert msgspec.json.decode(partial_object_metadata_list(items, {"resourceVersion": "7", "continue": "next"})) == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7", "continue": "next"},
        "items": [{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}],
    }
