"""The tables of custom resources (each cell was seen in a real kube-apiserver's table)."""

from __future__ import annotations

from typing import Any

import pytest

from herder.server.resources import Column, Resource
from herder.server.tables import Printer, printer_for
from herder.server.tables.ages import seconds_of

NOW = seconds_of("2026-01-02T03:00:00Z")
THING: dict[str, Any] = {
    "metadata": {"name": "t", "creationTimestamp": "2026-01-02T02:59:15Z"},
    "spec": {
        "s": "text",
        "i": 5,
        "f": 2.5,
        "big": 1e18,
        "huge": 1e21,
        "b": True,
        "m": {"k": "v", "a": [1]},
        "nil": None,
        "d": "2026-01-02T00:30:00Z",
    },
}


def printer(*columns: Column) -> Printer:
    return printer_for(
        Resource(
            group="ex.io",
            version="v1",
            plural="things",
            singular="thing",
            kind="Thing",
            namespaced=True,
            builtin=False,
            columns=columns,
        )
    )


@pytest.mark.parametrize(
    ("kind", "field", "cell"),
    [
        ("string", "s", "text"),
        ("string", "i", "5"),
        ("string", "f", "2.5"),
        ("string", "big", "1000000000000000000"),
        ("string", "huge", "1e+21"),
        ("string", "b", "true"),
        ("string", "m", '{"a":[1],"k":"v"}'),
        ("string", "nil", "<no value>"),
        ("string", "missing", None),
        ("integer", "i", 5),
        ("integer", "f", 2),
        ("integer", "s", None),
        ("integer", "b", None),
        ("integer", "nil", None),
        ("number", "f", 2.5),
        ("number", "i", 5),
        ("boolean", "b", True),
        ("boolean", "s", None),
        ("date", "d", "150m"),
        ("date", "s", "<invalid>"),
        ("date", "missing", None),
        ("date", "i", None),
    ],
)
def test_a_cell_has_the_type_of_its_column_or_is_null(kind: str, field: str, cell: Any) -> None:
    shown = printer(Column("C", kind, json_path=f".spec.{field}")).cells(THING, NOW)
    assert shown == ["t", cell]
    assert type(shown[1]) is type(cell)


def test_without_columns_of_its_own_a_resource_shows_its_age() -> None:
    shown = printer()
    assert [(column.name, column.type) for column in shown.columns] == [("Name", "string"), ("Age", "date")]
    assert shown.cells(THING, NOW) == ["t", "45s"]


def test_columns_keep_what_their_definition_says() -> None:
    shown = printer(Column("C", "string", "Why.", "", 1, ".spec.s"), Column("D", "string", json_path=".spec.i"))
    assert shown.columns[1] == Column("C", "string", "Why.", "", 1, ".spec.s")
    assert ".spec.i" in shown.columns[2].description


def test_a_path_that_makes_no_sense_ends_the_columns_there() -> None:
    paths = (".spec.s", ".spec[", ".spec.i")
    shown = printer(*[Column(path, "string", json_path=path) for path in paths])
    assert [column.name for column in shown.columns] == ["Name", ".spec.s"]
    assert shown.cells(THING, NOW) == ["t", "text"]
