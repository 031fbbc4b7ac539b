"""The six guarantees of a watch: ordered, unique, atomic, reliable, resumable, bookmarkable."""

import asyncio
from typing import Any

from tests.behaviour.manifests import config_map
from tests.engines.api import Api
from tests.engines.resources import SECRETS


async def version_of(api: Api, namespace: str) -> str:
    return (await api.list(SECRETS, namespace)).ok["metadata"]["resourceVersion"]


async def relabel(api: Api, namespace: str, name: str, value: str) -> str:
    reply = await api.patch(SECRETS, name, {"metadata": {"labels": {"value": value}}}, namespace)
    return reply.ok["metadata"]["resourceVersion"]


async def test_every_write_is_one_event_with_the_object_as_written(api: Api, namespace: str) -> None:
    async with api.watch(SECRETS, namespace, resourceVersion=await version_of(api, namespace)) as watch:
        created = (await api.create(SECRETS, config_map("a"), namespace)).ok
        changed = (await api.patch(SECRETS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)).ok
        await api.delete(SECRETS, "a", namespace)
        events = await watch.take(3)
        assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        assert [event.object for event in events[:2]] == [created, changed]


async def test_a_deleted_object_is_shown_as_it_was_with_the_version_of_its_deletion(api: Api, namespace: str) -> None:
    created = (await api.create(SECRETS, config_map("a", labels={"x": "y"}), namespace)).ok
    async with api.watch(SECRETS, namespace, resourceVersion=created["metadata"]["resourceVersion"]) as watch:
        await api.delete(SECRETS, "a", namespace)
        gone = await watch.next()
        assert gone.brief == ("DELETED", "a")
        assert gone.object["metadata"]["labels"] == {"x": "y"}
        assert gone.object["metadata"]["uid"] == created["metadata"]["uid"]
        assert int(gone.version) > int(created["metadata"]["resourceVersion"])


async def test_events_come_in_the_order_of_the_writes(api: Api, namespace: str) -> None:
    """Ordered and unique: versions only grow, over all objects, and none comes twice."""
    async with api.watch(SECRETS, namespace, resourceVersion=await version_of(api, namespace)) as watch:
        names = [f"s{number}" for number in range(10)]
        await asyncio.gather(*[api.create(SECRETS, config_map(name), namespace) for name in names])
        await asyncio.gather(*[relabel(api, namespace, name, "x") for name in names])
        events = await watch.take(20)
        versions = [int(event.version) for event in events]
        assert versions == sorted(set(versions))
        assert sorted(event.brief for event in events) == sorted([(kind, name) for kind in ("ADDED", "MODIFIED") for name in names])


async def test_no_version_is_skipped(api: Api, namespace: str) -> None:
    """Reliable and atomic: each of many changes of one object is seen, complete, and in step with what the writer was told."""
    await api.create(SECRETS, config_map("a"), namespace)
    async with api.watch(SECRETS, namespace, resourceVersion=await version_of(api, namespace)) as watch:
        written = [(await relabel(api, namespace, "a", str(number)), str(number)) for number in range(20)]
        events = await watch.take(20)
        assert [(event.version, event.object["metadata"]["labels"]["value"]) for event in events] == written


async def test_a_write_that_changes_nothing_is_no_event(api: Api, namespace: str) -> None:
    await api.create(SECRETS, config_map("a", labels={"value": "1"}), namespace)
    async with api.watch(SECRETS, namespace, resourceVersion=await version_of(api, namespace)) as watch:
        await relabel(api, namespace, "a", "1")
        await relabel(api, namespace, "a", "2")
        assert (await watch.next()).object["metadata"]["labels"] == {"value": "2"}


async def test_a_watch_goes_on_where_another_ended(api: Api, namespace: str) -> None:
    """Resumable: what was written between the two connections is not lost, and nothing is told twice."""
    async with api.watch(SECRETS, namespace, resourceVersion=await version_of(api, namespace)) as watch:
        await api.create(SECRETS, config_map("a"), namespace)
        await api.create(SECRETS, config_map("b"), namespace)
        assert (await watch.next()).brief == ("ADDED", "a")  # b was perhaps sent too, but never seen
        watch.close()
        await relabel(api, namespace, "a", "x")
        await api.delete(SECRETS, "b", namespace)
        await watch.resume()
        assert [event.brief for event in await watch.take(3)] == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_a_list_and_a_watch_from_its_version_miss_nothing(api: Api, namespace: str) -> None:
    async def write() -> None:
        for number in range(20):
            await api.create(SECRETS, config_map(f"s{number:02}"), namespace)

    writer = asyncio.create_task(write())
    listed = await api.list(SECRETS, namespace)
    async with api.watch(SECRETS, namespace, resourceVersion=listed.ok["metadata"]["resourceVersion"]) as watch:
        await writer
        rest = await watch.take(20 - len(listed.names))
        assert listed.names + [event.name for event in rest] == [f"s{number:02}" for number in range(20)]
        assert {event.type for event in rest} <= {"ADDED"}


async def test_all_watchers_see_the_same(api: Api, namespace: str) -> None:
    version = await version_of(api, namespace)
    async with (
        api.watch(SECRETS, namespace, resourceVersion=version) as one,
        api.watch(SECRETS, resourceVersion=version) as all_over,
    ):
        for name in "abc":
            await api.create(SECRETS, config_map(name), namespace)
        mine = await one.take(3)
        seen = [event for event in await all_over.until("ADDED", "c") if event.object["metadata"].get("namespace") == namespace]
        assert seen == mine


async def test_a_bookmark_brings_a_version_to_go_on_from(api: Api, namespace: str) -> None:
    """Bookmarkable: the version moves on though nothing that this watch would show has changed."""
    await api.create(SECRETS, config_map("a"), namespace)
    options: dict[str, Any] = {"allowWatchBookmarks": True, "sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
    async with api.watch(SECRETS, namespace, **options) as watch:
        bookmark = (await watch.until("BOOKMARK"))[-1]
        assert bookmark.object["kind"] == "Secret"
        assert set(bookmark.object["metadata"]) == {"resourceVersion", "annotations"}
        await relabel(api, namespace, "a", "x")
        async with api.watch(SECRETS, namespace, resourceVersion=bookmark.version) as after:
            assert (await after.next()).brief == ("MODIFIED", "a")
