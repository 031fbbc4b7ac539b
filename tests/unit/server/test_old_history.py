"""What happens to those who come back too late: history before a compaction is gone, and they are told how to go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from herder.server.verbs import watch as watch_verb
from tests.unit.server.inside import Inside, config_map, engine_inside

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Inside]:
    async with engine_inside(tmp_path) as engine:
        yield engine


async def write(inside: Inside, *names: str) -> int:
    """Each is made and then changed; the revision before the last change."""
    before = 0
    for name in names:
        code, _ = await inside.ask("POST", MAPS, config_map(name, k="1"))
        assert code == 201
        before = inside.store.revision
        code, _ = await inside.ask("PUT", f"{MAPS}/{name}", config_map(name, k="2"))
        assert code == 200
    return before


async def test_a_watch_from_before_the_compaction_is_told_that_it_expired(inside: Inside) -> None:
    await write(inside, "a", "b")
    assert inside.store.compact(inside.store.revision)
    events = [event async for event in inside.watch(f"{MAPS}?watch=1&resourceVersion=1")]
    (event,) = events
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert event["object"]["message"] == f"too old resource version: 1 ({inside.store.compacted})"


@pytest.mark.slow
async def test_a_watch_from_after_the_compaction_sees_what_followed(inside: Inside) -> None:
    await write(inside, "a")
    assert inside.store.compact(inside.store.revision)
    here = inside.store.revision
    await write(inside, "b")
    seen = [event async for event in inside.watch(f"{MAPS}?watch=1&resourceVersion={here}&timeoutSeconds=1")]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [("ADDED", "b"), ("MODIFIED", "b")]


async def test_a_page_from_before_the_compaction_brings_a_token_for_the_rest(inside: Inside) -> None:
    await write(inside, "a", "b", "c")
    _, page = await inside.ask("GET", f"{MAPS}?limit=1")
    token = page["metadata"]["continue"]
    await write(inside, "d")
    assert inside.store.compact(inside.store.revision)
    code, expired = await inside.ask("GET", f"{MAPS}?limit=1&continue={token}")
    assert (code, expired["reason"]) == (410, "Expired")
    again = expired["metadata"]["continue"]
    code, rest = await inside.ask("GET", f"{MAPS}?continue={again}")
    assert code == 200
    assert [item["metadata"]["name"] for item in rest["items"]] == ["b", "c", "d"]


async def test_a_list_of_an_exact_old_version_is_that_version_or_expired(inside: Inside) -> None:
    before = await write(inside, "a")
    path = f"{MAPS}?resourceVersion={before}&resourceVersionMatch=Exact"
    code, then = await inside.ask("GET", path)
    assert (code, then["items"][0]["data"], then["metadata"]["resourceVersion"]) == (200, {"k": "1"}, str(before))
    assert inside.store.compact(inside.store.revision)
    code, expired = await inside.ask("GET", path)
    assert (code, expired["reason"]) == (410, "Expired")


async def test_a_bookmark_comes_after_everything_that_it_stands_for(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that goes on from a bookmark must have been given all events up to it."""
    monkeypatch.setattr(watch_verb, "BOOKMARK_EVERY", 0.0)
    seen: list[tuple[str, int]] = []
    path = f"{MAPS}?watch=1&resourceVersion={inside.store.revision}&allowWatchBookmarks=true&timeoutSeconds=10"
    async for event in inside.watch(path):
        seen.append((event["type"], int(event["object"]["metadata"]["resourceVersion"])))
        if len(seen) == 3:
            await write(inside, "a")
        elif event["type"] == "MODIFIED" and event["object"]["metadata"]["name"] == "a":
            await write(inside, "b")  # while the watch is busy with handing out events, and its next bookmark is due
        if len(seen) > 12:
            break
    assert [kind for kind, _ in seen if kind != "BOOKMARK"] == ["ADDED", "MODIFIED"] * 2
    revisions = [revision for _, revision in seen]
    assert revisions == sorted(revisions), "a bookmark overtook an event"
