"""Where a watch begins, what it shows, and how it ends."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.behaviour.manifests import absent_node, config_map, pod
from tests.engines.api import Api
from tests.engines.resources import NAMESPACES, PODS, SECRETS

INITIAL: dict[str, Any] = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
END = {"k8s.io/initial-events-end": "true"}


async def fill(api: Api, namespace: str) -> str:
    """The version after the last of them."""
    made = [(await api.create(SECRETS, config_map(name, labels={"letter": name}), namespace)).ok for name in "ab"]
    return made[-1]["metadata"]["resourceVersion"]


@pytest.mark.parametrize("version", [{}, {"resourceVersion": "0"}], ids=["unset", "zero"])
async def test_without_a_version_a_watch_begins_with_what_is_there(api: Api, namespace: str, version: dict[str, str]) -> None:
    await fill(api, namespace)
    async with api.watch(SECRETS, namespace, **version) as watch:
        assert sorted([event.brief for event in await watch.take(2)]) == [("ADDED", "a"), ("ADDED", "b")]
        await api.create(SECRETS, config_map("c"), namespace)
        assert (await watch.next()).brief == ("ADDED", "c")


async def test_with_a_version_a_watch_begins_after_it(api: Api, namespace: str) -> None:
    last = await fill(api, namespace)
    await api.delete(SECRETS, "a", namespace)
    async with api.watch(SECRETS, namespace, resourceVersion=last) as watch:
        assert (await watch.next()).brief == ("DELETED", "a")


async def test_initial_events_end_with_a_marked_bookmark(api: Api, namespace: str) -> None:
    last = await fill(api, namespace)
    async with api.watch(SECRETS, namespace, allowWatchBookmarks=True, **INITIAL) as watch:
        events = await watch.until("BOOKMARK")
        assert sorted(event.brief for event in events[:-1]) == [("ADDED", "a"), ("ADDED", "b")]
        assert events[-1].object["metadata"]["annotations"] == END
        assert int(events[-1].version) >= int(last)
        await api.delete(SECRETS, "a", namespace)
        assert (await watch.next()).brief == ("DELETED", "a")


async def test_initial_events_of_nothing_are_the_bookmark_alone(api: Api, namespace: str) -> None:
    async with api.watch(SECRETS, namespace, allowWatchBookmarks=True, **INITIAL) as watch:
        only = await watch.next()
        assert (only.type, only.object["metadata"]["annotations"]) == ("BOOKMARK", END)


@pytest.mark.slow
async def test_without_bookmarks_the_end_of_initial_events_is_not_marked(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    async with api.watch(SECRETS, namespace, timeoutSeconds=1, **INITIAL) as watch:
        assert [event.type for event in await watch.rest()] == ["ADDED", "ADDED"]


async def test_no_initial_events_can_be_asked_for(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    options: dict[str, Any] = {**INITIAL, "sendInitialEvents": False, "allowWatchBookmarks": True}
    async with api.watch(SECRETS, namespace, **options) as watch:
        await api.create(SECRETS, config_map("c"), namespace)
        events = await watch.until("ADDED")
        assert events[-1].name == "c"


async def test_a_selector_turns_changes_into_comings_and_goings(api: Api, namespace: str) -> None:
    last = await fill(api, namespace)
    async with api.watch(SECRETS, namespace, resourceVersion=last, labelSelector="letter=a") as watch:
        for letter in "zaz":
            await api.patch(SECRETS, "b", {"metadata": {"labels": {"letter": letter}}}, namespace)
        await api.patch(SECRETS, "a", {"metadata": {"labels": {"more": "x"}}}, namespace)
        await api.patch(SECRETS, "a", {"metadata": {"labels": {"letter": "z"}}}, namespace)
        events = await watch.take(4)
        assert [event.brief for event in events] == [("ADDED", "b"), ("DELETED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
        gone = events[1].object["metadata"]
        assert gone["labels"]["letter"] == "a"  # as it last matched
        assert int(gone["resourceVersion"]) > int(events[0].version)


async def test_a_field_selector_does_too(api: Api, namespace: str) -> None:
    created = (await api.create(PODS, pod("a", nodeName=absent_node(namespace)), namespace)).ok
    version = created["metadata"]["resourceVersion"]
    async with api.watch(PODS, namespace, resourceVersion=version, fieldSelector="status.phase=Running") as watch:
        for phase in ("Running", "Succeeded"):
            await api.patch(PODS, "a", {"status": {"phase": phase}}, namespace, "status")
        assert [event.type for event in await watch.take(2)] == ["ADDED", "DELETED"]


async def test_a_single_name_can_be_watched(api: Api, namespace: str) -> None:
    last = await fill(api, namespace)
    async with api.watch(SECRETS, namespace, resourceVersion=last, fieldSelector="metadata.name=b") as watch:
        await api.patch(SECRETS, "a", {"metadata": {"labels": {"x": "y"}}}, namespace)
        await api.patch(SECRETS, "b", {"metadata": {"labels": {"x": "y"}}}, namespace)
        assert (await watch.next()).brief == ("MODIFIED", "b")


async def test_the_address_of_an_object_is_read_and_not_watched(api: Api, namespace: str) -> None:
    last = await fill(api, namespace)
    reply = await api.get(SECRETS, "b", namespace, watch=True)
    assert (reply.ok["kind"], reply.ok["metadata"]["resourceVersion"]) == ("Secret", last)


async def test_cluster_wide_objects_are_watched(api: Api, unique: Callable[..., str]) -> None:
    name = unique()
    async with api.watch(NAMESPACES, fieldSelector=f"metadata.name={name}") as watch:
        await api.create(NAMESPACES, {"metadata": {"name": name}})
        assert (await watch.next()).brief == ("ADDED", name)
        await api.delete(NAMESPACES, name)
        marked = await watch.next()
        assert (marked.type, marked.object["status"]["phase"]) == ("MODIFIED", "Terminating")


@pytest.mark.slow
async def test_a_watch_ends_after_its_timeout(api: Api, namespace: str) -> None:
    await fill(api, namespace)
    async with api.watch(SECRETS, namespace, timeoutSeconds=1) as watch:
        assert watch.code == 200
        assert len(await watch.rest()) == 2


async def test_a_watch_streams_json_in_chunks(api: Api, namespace: str) -> None:
    async with api.watch(SECRETS, namespace, timeoutSeconds=1) as watch:
        assert watch.answer.headers["Content-Type"] == "application/json"
        assert watch.answer.headers["Transfer-Encoding"] == "chunked"


@pytest.mark.slow
async def test_a_watch_from_the_future_is_silent_until_then(api: Api, namespace: str) -> None:
    last = await fill(api, namespace)
    future = str(int(last) + 1_000_000)
    async with api.watch(SECRETS, namespace, resourceVersion=future, timeoutSeconds=1) as watch:
        await api.create(SECRETS, config_map("c"), namespace)
        assert (watch.code, await watch.rest()) == (200, [])


async def test_a_selector_that_cannot_be_read_is_a_bad_request(api: Api, namespace: str) -> None:
    async with api.watch(SECRETS, namespace, labelSelector="a in") as watch:
        assert (watch.code, (await watch.body())["reason"]) == (400, "BadRequest")
