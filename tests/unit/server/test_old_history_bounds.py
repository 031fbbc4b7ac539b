"""History is handed out in pieces that are bounded in bytes: an object of a megabyte that was changed a thousand times is a
gigabyte of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from herder.server.request import Stream
from herder.server.store import store as stores
from herder.server.store.history import History
from herder.server.store.replaying import KEPT_BYTES, PAGE_BYTES
from tests.unit.server.inside import Inside, config_map, engine_inside

MAPS = "/api/v1/namespaces/default/configmaps"
SIZE, TIMES = 300_000, 20


@pytest.fixture(params=["memory", "disk"])
async def inside(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Inside]:
    async with engine_inside(tmp_path) as engine:
        if request.param == "disk":
            engine.store.history = History(engine.store.revision, limit=0)
        yield engine


async def changed_often(inside: Inside, name: str = "large") -> int:
    """The revision from before all of it."""
    before = inside.store.revision
    code, _ = await inside.ask("POST", MAPS, config_map(name, filler="x" * SIZE))
    assert code == 201
    for number in range(TIMES):
        patch = {"data": {"n": str(number)}}
        code, _ = await inside.ask("PATCH", f"{MAPS}/{name}", patch, content_type="application/merge-patch+json")
        assert code == 200
    return before


async def chunks_of(inside: Inside, path: str) -> list[bytes]:
    answer = await inside.router.handle(inside.request("GET", path, None))
    assert isinstance(answer, Stream), answer
    return [chunk async for chunk in answer.chunks()]


@pytest.mark.slow
@pytest.mark.parametrize("selector", ["", "&fieldSelector=metadata.name!=other"])
async def test_an_old_watch_gets_everything_in_small_pieces(inside: Inside, selector: str) -> None:
    before = await changed_often(inside)
    chunks = await chunks_of(inside, f"{MAPS}?watch=1&resourceVersion={before}&timeoutSeconds=1{selector}")
    events = [msgspec.json.decode(line) for line in b"".join(chunks).splitlines()]
    assert [event["type"] for event in events] == ["ADDED", *["MODIFIED"] * TIMES]
    assert [event["object"]["data"].get("n") for event in events] == [None, *map(str, range(TIMES))]
    assert max(map(len, chunks)) < PAGE_BYTES + 2 * SIZE


async def test_pages_that_were_read_are_kept_within_bounds_and_shared(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await changed_often(inside)
    first = await inside.store.changes_after("configmaps", before, inside.store.revision)
    again = await inside.store.changes_after("configmaps", before, inside.store.revision)
    assert [change.record.raw for change in first.changes] == [change.record.raw for change in again.changes]
    assert all(one.record is other.record for one, other in zip(first.changes, again.changes, strict=True))
    assert first.size <= PAGE_BYTES + 2 * (SIZE + 1000) < KEPT_BYTES


async def test_a_list_of_how_it_was_reads_only_what_it_shows(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each step in between: one state of each object, however often it changed."""
    await changed_often(inside, "a")
    then = inside.store.revision
    await changed_often(inside, "b")
    await inside.ask("PATCH", f"{MAPS}/a", {"data": {"n": "later"}}, content_type="application/merge-patch+json")
    monkeypatch.setattr(stores, "MOST_OLD_BYTES", 2 * SIZE)
    code, listed = await inside.ask("GET", f"{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert code == 200
    assert [(item["metadata"]["name"], item["data"]["n"]) for item in listed["items"]] == [("a", str(TIMES - 1))]


@pytest.mark.slow
async def test_too_much_of_how_it_was_is_expired_and_comes_in_smaller_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_inside(tmp_path) as inside:
        inside.store.history = History(inside.store.revision, limit=0)
        for name in "abc":
            await inside.ask("POST", MAPS, config_map(name, filler="x" * SIZE))
        then = inside.store.revision
        for name in "abc":
            await inside.ask("PUT", f"{MAPS}/{name}", config_map(name, filler="y"))
        monkeypatch.setattr(stores, "MOST_OLD_BYTES", SIZE * 5 // 2)
        monkeypatch.setattr("herder.server.store.tables.BATCH", 1)
        path = f"{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact"
        code, refused = await inside.ask("GET", path)
        assert (code, refused["reason"]) == (410, "Expired")
        code, page = await inside.ask("GET", f"{path}&limit=2")
        assert code == 200
        assert [item["data"]["filler"][0] for item in page["items"]] == ["x", "x"]
        assert page["metadata"]["remainingItemCount"] == 1
