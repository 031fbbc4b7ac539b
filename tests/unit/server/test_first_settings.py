"""The KubeVirt object of an embedded engine: made at its start where it is missing, and left alone otherwise."""

from pathlib import Path

import pytest

from herder.api.registry import SETTINGS
from herder.server.running import Running
from herder.server.store import InlineWriter, Store
from tests.unit.server.inside import Inside, Json, StillWorld, config_map, engine_inside
from tests.unit.server.store.rig import BreakableDatabase

ALL = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts"
ONE = f"{ALL}/kubevirt"
MAPS = "/api/v1/namespaces/default/configmaps"


async def _stored(inside: Inside) -> Json:
    code, found = await inside.ask("GET", ONE)
    assert code == 200, found
    return found


@pytest.mark.slow
async def test_it_is_there_from_the_start_with_an_empty_spec_and_what_people_write_stays(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=(SETTINGS,)) as inside:
        first = await _stored(inside)
        assert first["spec"] == {}
        wanted = {**first, "spec": {"configuration": {"evictionStrategy": "External"}}}
        _, written = await inside.ask("PUT", ONE, wanted)
    async with engine_inside(tmp_path, kinds=(SETTINGS,)) as inside:
        assert await _stored(inside) == written


@pytest.mark.slow
async def test_who_deletes_it_does_not_find_it_again_before_the_next_start(tmp_path: Path) -> None:
    """So that a new one can be created in its place."""
    async with engine_inside(tmp_path, kinds=(SETTINGS,)) as inside:
        uid = (await _stored(inside))["metadata"]["uid"]
        assert (await inside.ask("DELETE", ONE))[0] == 200
        assert (await inside.ask("GET", ALL))[1]["items"] == []
    async with engine_inside(tmp_path, kinds=(SETTINGS,)) as inside:
        again = await _stored(inside)
        assert (again["spec"], again["metadata"]["uid"] == uid) == ({}, False)


@pytest.mark.slow
async def test_an_engine_starts_while_the_namespace_of_its_settings_is_being_removed(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=(SETTINGS,)) as inside:
        held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/later"]}}
        assert (await inside.ask("POST", "/api/v1/namespaces/kubevirt/configmaps", held))[0] == 201
        assert (await inside.ask("DELETE", ONE))[0] == 200
        assert (await inside.ask("DELETE", "/api/v1/namespaces/kubevirt"))[0] == 200
    async with engine_inside(tmp_path, kinds=(SETTINGS,)) as inside:
        assert (await inside.ask("GET", ONE))[0] == 404


@pytest.mark.slow
async def test_an_engine_whose_disk_is_full_starts_without_them(tmp_path: Path) -> None:
    """A full disk keeps nobody from reading."""
    database = BreakableDatabase(tmp_path / "herder.db")
    running = Running(Store(database, InlineWriter(database)), StillWorld())
    await running.start()
    inside = Inside(running, StillWorld())
    assert (await inside.ask("DELETE", ONE))[0] == 200
    database.fill()
    for size in (3000, 0):  # to the last byte
        number = 0
        while (await inside.ask("POST", MAPS, config_map(f"m-{size}-{number}", k="x" * size)))[0] == 201:
            number += 1
    await running.stop()
    database = BreakableDatabase(tmp_path / "herder.db")
    database.fill()
    running = Running(Store(database, InlineWriter(database)), StillWorld())
    await running.start()
    try:
        inside = Inside(running, StillWorld())
        assert (await inside.ask("GET", ONE))[0] == 404
        assert (await inside.ask("GET", f"{MAPS}/m-0-0"))[0] == 200
    finally:
        await running.stop()


async def test_one_elsewhere_that_was_stored_before_that_was_refused_can_be_changed_and_deleted(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=(SETTINGS,)) as inside:
        found = await _stored(inside)
        served = inside.running.engine.served("kubevirt.io", "v1", "kubevirts")
        elsewhere = {**found, "metadata": {"name": "old", "namespace": "default"}, "spec": {}}
        place = "/apis/kubevirt.io/v1/namespaces/default/kubevirts"
        code, refused = await inside.ask("POST", place, elsewhere)
        assert (code, "metadata.namespace" in refused["message"]) == (422, True)
        judge = served.strategy.validate_create
        served.strategy.validate_create = lambda obj, typed: []  # type: ignore[method-assign]
        try:
            code, stored = await inside.ask("POST", place, elsewhere)
        finally:
            served.strategy.validate_create = judge  # type: ignore[method-assign]
        assert code == 201
        code, changed = await inside.ask("PUT", f"{place}/old", {**stored, "spec": {"configuration": {"evictionStrategy": "None"}}})
        assert (code, changed["metadata"]["generation"]) == (200, 2)
        assert (await inside.ask("DELETE", f"{place}/old"))[0] == 200
