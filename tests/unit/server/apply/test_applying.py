"""The laws of applying, whatever is applied."""

from typing import Any

import pytest
from hypothesis import given

from herder.server.apply import apply, apply_new, owned
from herder.server.fields import contains, paths
from herder.server.fields.managed import fields_of
from tests.unit.server.apply.schemas import FIELDS, LATER, SCHEMA, Json, by, config, specs


def stored(applied: Any) -> Json:
    """What an apply leaves behind, as the next one finds it. Nulls are not stored."""
    document = _without_nulls(applied.document)
    entries = [{**entry, "fieldsV1": fields_of(entry)} for entry in applied.entries]
    document["metadata"] = {**document["metadata"], **({"managedFields": entries} if entries else {})}
    return document


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        fields: Json = value
        return {key: _without_nulls(inner) for key, inner in fields.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def made(spec: Json, manager: str = "one") -> Json:
    return stored(apply_new(config(spec), FIELDS, by(manager)))


def after(live: Json, spec: Json | None, manager: str, *, force: bool = True, now: str = LATER) -> Json:
    return stored(apply(live, config(spec), FIELDS, by(manager, now), force=force))


def fields(live: Json, manager: str) -> set[tuple[str, ...]]:
    entry = next((one for one in live["metadata"].get("managedFields", []) if one["manager"] == manager), {})
    return set(paths(fields_of(entry)))


def everything(live: Json) -> set[tuple[str, ...]]:
    whole = FIELDS.field_set({key: value for key, value in live.items() if key != "metadata"})
    return set(paths(whole))


@given(specs)
def test_applying_again_changes_nothing(spec: Json):
    live = made(spec)
    assert after(live, spec, "one") == live


@given(specs, specs)
def test_applying_again_changes_nothing_beside_another(first: Json, second: Json):
    live = after(made(first), second, "two")
    assert after(live, second, "two", force=False) == live


@given(specs, specs)
def test_what_was_applied_is_there(first: Json, second: Json):
    live = after(made(first), second, "two")
    wanted = set(paths(owned(FIELDS.shape, config(second)["spec"] and {"spec": second})))
    assert wanted == fields(live, "two")
    assert wanted <= everything(live)


@given(specs, specs)
def test_an_owner_owns_only_what_is_there(first: Json, second: Json):
    live = after(after(made(first), second, "two"), None, "one")
    for manager in ("one", "two"):
        assert fields(live, manager) <= everything(live)


@given(specs, specs)
def test_without_force_either_nothing_is_lost_or_nothing_is_done(first: Json, second: Json):
    live = made(first)
    applied = apply(live, config(second), FIELDS, by("two"), force=False)
    if applied.conflicts:
        held = fields(live, "one")
        assert all(one.path in held for one in applied.conflicts)
        assert all(contains(owned(FIELDS.shape, {"spec": second}), one.path) for one in applied.conflicts)
    else:
        assert fields(stored(applied), "one") == fields(live, "one")


@pytest.mark.slow
@given(specs)
def test_applying_nothing_takes_everything_away_again(spec: Json):
    live = after(made(spec), None, "one")
    assert live == config(None)


@pytest.mark.slow
@given(specs, specs)
def test_applying_nothing_leaves_exactly_what_the_other_applied(first: Json, second: Json):
    live = after(after(made(first), second, "two"), None, "one")
    assert everything(live) == everything(made(second, "two"))
    assert after(live, None, "two") == config(None)


@given(specs, specs)
def test_the_result_fits_the_schema_and_nothing_given_is_changed(first: Json, second: Json):
    live, wanted = made(first), config(second)
    before = repr((live, wanted))
    applied = apply(live, wanted, FIELDS, by("two"), force=True)
    assert repr((live, wanted)) == before
    assert SCHEMA.type_errors(_without_nulls(applied.document)) == []


@given(specs, specs)
def test_a_time_moves_only_with_the_object(first: Json, second: Json):
    live = made(first)
    moved = after(live, second, "one")
    same = {key: value for key, value in moved.items() if key != "metadata"} == {k: v for k, v in live.items() if k != "metadata"}
    entry = moved["metadata"]["managedFields"][0]
    assert entry["time"] == (live["metadata"]["managedFields"][0]["time"] if same else LATER)
