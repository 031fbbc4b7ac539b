"""A restore is a busy moment like any other: ordinary events, new resourceVersions, nothing half done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from herder.api.registry import KINDS
from herder.server.backup import BackupWriter
from herder.server.request import ENGINE, MASTERS, Request, Stream, User
from tests.engines.waiting import eventually
from tests.unit.server.inside import Inside, config_map, engine_inside

Json = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def back_up(inside: Inside, path: Path) -> Path:
    answer = await inside.router.handle(Request(method="GET", path="/herder/backup", user=ENGINE))
    assert isinstance(answer, Stream)
    with BackupWriter(path) as out:
        lines = b"".join([chunk async for chunk in answer.chunks()]).splitlines(keepends=True)
        for line in lines[:-1]:
            out.line(line, is_object=line.startswith(b'{"kind":'))
        out.finish()
    return path


async def restore(inside: Inside, path: Path) -> Json:
    code, answer = await inside.ask("POST", "/herder/restore", {"file": str(path)})
    assert code == 200, answer
    return answer


async def make(inside: Inside, name: str, owner: Json | None = None, **data: str) -> Json:
    body = config_map(name, **data)
    if owner:
        metadata = owner["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}
        body["metadata"]["ownerReferences"] = [reference]
    return (await inside.ask("POST", MAPS, body))[1]


async def contents(inside: Inside) -> dict[str, Json]:
    _, listed = await inside.ask("GET", MAPS)
    return {item["metadata"]["name"]: item for item in listed["items"]}


async def take(events: AsyncIterator[Json], count: int) -> list[Json]:
    async with asyncio.timeout(5):
        return [await anext(events) for _ in range(count)]


@pytest.mark.slow
async def test_watchers_see_a_restore_as_ordinary_events(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=KINDS) as inside:
        kept = await make(inside, "kept", a="1")
        changed = await make(inside, "changed", a="1")
        removed = await make(inside, "removed", a="1")
        again = await make(inside, "again", a="1")
        path = await back_up(inside, tmp_path / "b")
        await inside.ask("PUT", f"{MAPS}/changed", config_map("changed", a="2"))
        await inside.ask("DELETE", f"{MAPS}/removed")
        await inside.ask("DELETE", f"{MAPS}/again")
        newer = await make(inside, "again", a="3")
        await make(inside, "extra", a="1")
        last = inside.store.revision
        events = inside.watch(f"{MAPS}?watch=1&resourceVersion={last}")
        done = await restore(inside, path)
        assert {name: done[name] for name in ("added", "changed", "deleted")} == {"added": 1, "changed": 2, "deleted": 1}
        seen = await take(events, 5)
        brief = [(event["type"], event["object"]["metadata"]["name"]) for event in seen]
        assert sorted(brief[:2]) == [("DELETED", "again"), ("DELETED", "extra")]
        assert sorted(brief[2:]) == [("ADDED", "again"), ("ADDED", "removed"), ("MODIFIED", "changed")]
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
        assert versions == sorted(versions)
        assert versions[0] > last
        assert seen[brief.index(("DELETED", "again"))]["object"]["metadata"]["uid"] == newer["metadata"]["uid"]
        now = await contents(inside)
        for before in (changed, removed, again):
            after = now[before["metadata"]["name"]]
            assert after["data"] == before["data"]
            assert after["metadata"]["uid"] == before["metadata"]["uid"]
            assert after["metadata"]["managedFields"] == before["metadata"]["managedFields"]
        assert now["kept"]["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"]
        assert "extra" not in now


@pytest.mark.slow
async def test_a_watch_from_before_goes_on_through_a_restore(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=KINDS) as inside:
        first = await make(inside, "a", a="1")
        path = await back_up(inside, tmp_path / "b")
        await inside.ask("PUT", f"{MAPS}/a", config_map("a", a="2"))
        await restore(inside, path)
        events = inside.watch(f"{MAPS}?watch=1&resourceVersion={first['metadata']['resourceVersion']}")
        assert [event["object"]["data"]["a"] for event in await take(events, 2)] == ["2", "1"]


@pytest.mark.slow
async def test_in_another_store_nobody_goes_on_from_revisions_of_the_first(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with engine_inside(tmp_path / "one", kinds=KINDS) as first, engine_inside(tmp_path / "two", kinds=KINDS) as second:
        made = await make(first, "a", a="1")
        path = await back_up(first, tmp_path / "b")
        for number in range(50):
            await make(first, f"later-{number}")
        await make(second, "b")
        done = await restore(second, path)
        assert done["revision"] > first.store.revision
        assert (await contents(second))["a"]["metadata"]["uid"] == made["metadata"]["uid"]
        for known in (made["metadata"]["resourceVersion"], str(first.store.revision)):
            (event,) = [event async for event in second.watch(f"{MAPS}?watch=1&resourceVersion={known}")]
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


@pytest.mark.slow
async def test_restoring_twice_changes_nothing_the_second_time(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=KINDS) as inside:
        await make(inside, "a")
        path = await back_up(inside, tmp_path / "b")
        revision = inside.store.revision
        done = await restore(inside, path)
        assert (done["added"], done["changed"], done["deleted"]) == (0, 0, 0)
        assert inside.store.revision == revision


@pytest.mark.slow
async def test_owners_that_come_back_keep_what_they_own(tmp_path: Path) -> None:
    """Both were deleted: while they come back one by one, an owner may be missing for a moment."""
    async with engine_inside(tmp_path, kinds=KINDS) as inside:
        owner = await make(inside, "z-owner")
        await make(inside, "a-child", owner)
        path = await back_up(inside, tmp_path / "b")
        await inside.ask("DELETE", f"{MAPS}/z-owner")

        async def collected() -> bool:
            return "a-child" not in await contents(inside)

        await eventually(collected)
        await restore(inside, path)
        for _ in range(50):
            await asyncio.sleep(0)
        assert {"z-owner", "a-child"} <= set(await contents(inside))


@pytest.mark.slow
async def test_what_lost_its_finalizer_since_waits_again(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=KINDS) as inside:
        body = config_map("held")
        body["metadata"]["finalizers"] = ["example.com/hold"]
        await inside.ask("POST", MAPS, body)
        await inside.ask("DELETE", f"{MAPS}/held")
        path = await back_up(inside, tmp_path / "b")
        patch = {"metadata": {"finalizers": None}}
        await inside.ask("PATCH", f"{MAPS}/held", patch, content_type="application/merge-patch+json")
        assert "held" not in await contents(inside)
        await restore(inside, path)
        held = (await contents(inside))["held"]["metadata"]
        assert held["deletionTimestamp"]
        assert held["finalizers"] == ["example.com/hold"]


def definition(size: str) -> Json:
    schema = {"type": "object", "properties": {"size": {"type": size}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": spec,
    }


@pytest.mark.slow
async def test_kinds_come_back_as_they_were(tmp_path: Path) -> None:
    """The one that stands in their place has the same name and the same generation."""
    things = "/apis/example.com/v1/namespaces/default/things"
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "size": 1}

    async def answers(inside: Inside, code: int) -> None:
        async def look() -> bool:
            return (await inside.ask("GET", things))[0] == code

        await eventually(look)

    async with engine_inside(tmp_path, kinds=KINDS) as inside:
        await inside.ask("POST", CRDS, definition("integer"))
        await answers(inside, 200)
        assert (await inside.ask("POST", things, thing))[0] == 201
        path = await back_up(inside, tmp_path / "b")
        await inside.ask("DELETE", f"{CRDS}/things.example.com")
        await answers(inside, 404)
        await inside.ask("POST", CRDS, definition("string"))
        await answers(inside, 200)
        await restore(inside, path)
        assert (await inside.ask("GET", f"{things}/a"))[1]["size"] == 1
        assert (await inside.ask("POST", things, {**thing, "metadata": {"name": "b"}}))[0] == 201
        code, _ = await inside.ask("POST", things, {**thing, "metadata": {"name": "c"}, "size": "x"})
        assert code == 422


@pytest.mark.slow
async def test_a_backup_is_of_one_moment_whatever_is_written_meanwhile(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=KINDS) as inside:
        for number in range(200):
            await make(inside, f"m-{number:03}", a="before")
        answer = await inside.router.handle(Request(method="GET", path="/herder/backup", user=ENGINE))
        assert isinstance(answer, Stream)
        chunks: list[bytes] = []
        async for chunk in answer.chunks():
            chunks.append(chunk)
            await inside.ask("PUT", f"{MAPS}/m-199", config_map("m-199", a="after"))
            await make(inside, f"new-{len(chunks)}")
        text = b"".join(chunks)
        assert text.count(b'"a":"before"') == 200
        assert b'"a":"after"' not in text
        assert b'"name":"new-' not in text


@pytest.mark.slow
async def test_what_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=KINDS) as inside:
        await make(inside, "a")
        (tmp_path / "bad").write_bytes(b"not a backup")
        revision = inside.store.revision
        for body in ({"file": str(tmp_path / "bad")}, {"file": str(tmp_path / "absent")}, {"path": "x"}, b"{"):
            code, answer = await inside.ask("POST", "/herder/restore", body)
            assert (code, answer["reason"]) == (400, "BadRequest")
        assert inside.store.revision == revision


@pytest.mark.slow
async def test_only_the_engines_own_programs_may_ask(tmp_path: Path) -> None:
    async with engine_inside(tmp_path, kinds=KINDS) as inside:
        for user in (User("admin", (MASTERS,)), User("nobody")):
            for method, path in (("GET", "/herder/backup"), ("POST", "/herder/restore")):
                code, _ = await inside.ask(method, path, {"file": "x"} if method == "POST" else None, user=user)
                assert code in (403, 404)
