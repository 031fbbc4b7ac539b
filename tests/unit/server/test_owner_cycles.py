"""Circles of owners that all wait in the foreground at once, however it came to that. Kubernetes leaves these standing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from herder.server.housekeeping import garbage
from herder.server.store import Database, InlineWriter, Record, Store
from tests.engines.waiting import eventually
from tests.unit.server.inside import Inside, config_map, engine_inside

Json = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
HOLD = "example.com/hold"
FOREGROUND = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}


async def owned(inside: Inside, owners: dict[str, list[str]]) -> None:
    """A ConfigMap of each name, with its owners by name. They all block."""
    made = {name: (await inside.ask("POST", MAPS, config_map(name)))[1] for name in owners}
    for name, names in owners.items():
        references = [reference(made[one]) for one in names]
        await inside.ask("PUT", f"{MAPS}/{name}", {**config_map(name), "metadata": {"name": name, "ownerReferences": references}})


def reference(of: Json) -> Json:
    named = {"name": of["metadata"]["name"], "uid": of["metadata"]["uid"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True, **named}


async def left(inside: Inside, *names: str) -> list[str]:
    return [name for name in names if (await inside.ask("GET", f"{MAPS}/{name}"))[0] == 200]


async def all_gone(inside: Inside, *names: str) -> None:
    async def gone() -> bool:
        return not await left(inside, *names)

    await eventually(gone)


def stuck_at_once(folder: Path) -> None:
    """As an engine left them that was killed when all of them waited."""
    database = Database(folder / "herder.db")
    store = Store(database, InlineWriter(database))
    for record in list(store.scan("configmaps", "default/")):
        document = record.document()
        if "ownerReferences" in document["metadata"]:
            revision = store.reserve()
            document["metadata"] |= {
                "finalizers": ["foregroundDeletion"],
                "deletionTimestamp": "2025-06-15T15:06:40Z",
                "deletionGracePeriodSeconds": 0,
                "resourceVersion": str(revision),
            }
            store.put("configmaps", Record(record.key, revision, msgspec.json.encode(document)), record)
    store.close()


@pytest.mark.slow
async def test_one_that_owns_itself_goes(tmp_path: Path) -> None:
    async with engine_inside(tmp_path) as inside:
        await owned(inside, {"self": ["self"]})
        await inside.ask("DELETE", f"{MAPS}/self", FOREGROUND)
        await all_gone(inside, "self")


@pytest.mark.slow
async def test_a_circle_that_all_waited_when_the_engine_was_killed_goes_after_its_start(tmp_path: Path) -> None:
    ring = {"a": ["d"], "b": ["a"], "c": ["b"], "d": ["c", "b"]}
    async with engine_inside(tmp_path) as inside:
        await owned(inside, ring)
    stuck_at_once(tmp_path)
    async with engine_inside(tmp_path) as inside:
        await all_gone(inside, *ring)


@pytest.mark.slow
async def test_a_chain_that_waits_keeps_its_order(tmp_path: Path) -> None:
    chain = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}
    async with engine_inside(tmp_path) as inside:
        await owned(inside, chain)
        patch = {"metadata": {"finalizers": [HOLD]}}
        await inside.ask("PATCH", f"{MAPS}/d", patch, content_type="application/merge-patch+json")
        for name in ("c", "b", "a"):
            await inside.ask("DELETE", f"{MAPS}/{name}", FOREGROUND)
        # One that nobody owned for long goes when all of the others have had their turn.
        nobody = {"metadata": {"name": "canary", "uid": "00000000-0000-4000-8000-00000000ffff"}}
        await inside.ask(
            "POST", MAPS, {**config_map("canary"), "metadata": {"name": "canary", "ownerReferences": [reference(nobody)]}}
        )
        await all_gone(inside, "canary")
        for name in ("b", "c", "d"):
            found = (await inside.ask("GET", f"{MAPS}/{name}"))[1]["metadata"]
            assert [one["blockOwnerDeletion"] for one in found["ownerReferences"]] == [True], name
        assert await left(inside, *chain) == list(chain)
        await inside.ask("PATCH", f"{MAPS}/d", {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json")
        await all_gone(inside, *chain)


@pytest.mark.slow
async def test_a_circle_beyond_what_is_searched_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "MOST_FOLLOWED", 3)
    ring = {f"s{number}": [f"s{(number or 12) - 1}"] for number in range(12)}
    async with engine_inside(tmp_path) as inside:
        await owned(inside, ring)
    stuck_at_once(tmp_path)
    async with engine_inside(tmp_path) as inside:
        await all_gone(inside, *ring)


async def test_a_stranger_in_another_namespace_cannot_hold_up_a_deletion(tmp_path: Path) -> None:
    elsewhere = "/api/v1/namespaces/kube-public/configmaps"
    async with engine_inside(tmp_path) as inside:
        mine = (await inside.ask("POST", MAPS, config_map("mine")))[1]
        metadata = {"name": "theirs", "finalizers": [HOLD], "ownerReferences": [reference(mine)]}
        assert (await inside.ask("POST", elsewhere, {**config_map("theirs"), "metadata": metadata}))[0] == 201
        await inside.ask("DELETE", f"{MAPS}/mine", FOREGROUND)
        await all_gone(inside, "mine")
