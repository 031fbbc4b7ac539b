"""What a cache answers: views, bytes, indexes; and what it does with objects that cannot be read."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from herder.api.core import ConfigMap
from herder.kube.cache import BY_LABEL, BY_NODE, BY_OWNER, Caches, Change, Index, label, owned
from herder.kube.cache.collector import collector_off
from herder.kube.client import Client, Selection
from herder.kube.errors import Unreadable
from herder.kube.resources import CONFIG_MAPS, PODS, SECRETS, Key, Resource
from tests.unit.kube.cache.conftest import Play
from tests.unit.kube.cache.rig import Rig
from tests.unit.server.inside import StillWorld


class Strict(ConfigMap, frozen=True, kw_only=True):
    """Wants numbers where ConfigMaps have text."""

    data: dict[str, int] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


STRICT: Resource[Strict] = Resource(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True, view=Strict)


def _key(name: str) -> Key:
    return Key("default", name)


def test_a_view_is_decoded_when_asked_for_and_only_once(play: Play) -> None:
    async def story(rig: Rig) -> None:
        await rig.create("a", k="1")
        rig.start()
        await rig.cache.wait_synced()
        view = rig.cache.get(_key("a"))
        assert view is not None and view.data == {"k": "1"}
        assert rig.cache.get(_key("a")) is view
        assert rig.cache.get(_key("b")) is None
        assert rig.cache.raw(_key("b")) is None
        assert (rig.cache.raw(_key("a")) or b"").startswith(b'{"apiVersion":"v1","kind":"ConfigMap"')

    play(story)


def test_lists_are_in_the_order_of_names_whatever_happened(play: Play) -> None:
    async def story(rig: Rig) -> None:
        for name in ("c", "a", "b"):
            await rig.create(name)
        rig.start()
        await rig.cache.wait_synced()
        await rig.delete("a")
        await rig.create("a")
        await rig.cache.wait_seen(await rig.create("0"))
        assert [one.name for one in rig.cache.list()] == ["0", "a", "b", "c"]
        assert rig.cache.list("elsewhere") == []
        keys = rig.cache.keys()
        assert [key.name for key in keys] == ["0", "a", "b", "c"]

    play(story)


def test_an_object_that_cannot_be_read_hurts_only_who_asks_for_it(play: Play) -> None:
    async def story(rig: Rig) -> None:
        cache = Caches(Client(rig.faults, "test"), StillWorld(), rig.registry_of_its_own()).of(STRICT)
        await rig.create("bad", k="x")
        await rig.create("good")
        async with rig.running(cache):
            await cache.wait_synced()
            assert [one.name for one in cache.list()] == ["good"]
            for _ in range(2):
                with pytest.raises(Unreadable, match="default/bad of configmaps cannot be read"):
                    cache.get(_key("bad"))
            assert cache.raw(_key("bad")) is not None
            assert rig.other_value("herder_cache_unreadable_total") == 1

    play(story)


def test_objects_are_found_by_labels_and_owners(play: Play) -> None:
    async def story(rig: Rig) -> None:
        # A real one: the engine clears away what has an owner that never was.
        uid = (await rig.direct.create(CONFIG_MAPS, {"metadata": {"name": "o"}}, "default")).uid
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid, "controller": True}
        second = (await rig.direct.create(CONFIG_MAPS, {"metadata": {"name": "p"}}, "default")).uid
        other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": second}
        for name, owners in (("z", [other, owner]), ("y", [owner])):
            metadata: dict[str, Any] = {"name": name, "labels": {"app": "x", "name": name}, "ownerReferences": owners}
            await rig.direct.create(CONFIG_MAPS, {"metadata": metadata}, "default")
        rig.start()
        await rig.cache.wait_synced()
        assert rig.cache.keys_by(BY_OWNER, owned("default", uid)) == (_key("y"), _key("z"))
        assert rig.cache.keys_by(BY_OWNER, owned("default", second)) == (_key("z"),), "by each of its owners"
        assert rig.cache.keys_by(BY_OWNER, owned("elsewhere", uid)) == (), "an owner of another namespace is none"
        assert [one.name for one in rig.cache.by(BY_LABEL, label("app", "x"))] == ["y", "z"]
        stored = rig.cache.stored(_key("y"))
        assert stored is not None and stored.controller is not None and stored.controller.name == "o"
        changed = await rig.direct.patch(CONFIG_MAPS, _key("y"), {"metadata": {"labels": {"app": "w"}, "ownerReferences": None}})
        await rig.cache.wait_seen(changed.metadata.resource_version or "")
        assert rig.cache.keys_by(BY_OWNER, owned("default", uid)) == (_key("z"),)
        assert rig.cache.keys_by(BY_LABEL, "app=x") == (_key("z"),)
        assert rig.cache.keys_by(BY_LABEL, "app=w") == (_key("y"),)

    play(story)


def test_pods_are_found_by_their_node(play: Play) -> None:
    async def story(rig: Rig) -> None:
        cache = Caches(Client(rig.faults, "test"), StillWorld()).of(PODS)
        cache.add_index(BY_NODE)
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await rig.direct.create(PODS, {"metadata": {"name": "p"}, "spec": {**spec, "nodeName": "n-1"}}, "default")
        await rig.direct.create(PODS, {"metadata": {"name": "q"}, "spec": spec}, "default")
        async with rig.running(cache):
            await cache.wait_synced()
            assert cache.keys_by(BY_NODE, "n-1") == (_key("p"),)
            assert cache.keys_by(BY_NODE, "") == ()

    play(story)


def test_an_index_of_ones_own_may_come_late_and_look_at_the_view(play: Play) -> None:
    async def story(rig: Rig) -> None:
        by_colour: Index[ConfigMap] = Index("colour", lambda stored: [(stored.view.data or {}).get("colour", "none")])
        await rig.create("a", colour="red")
        rig.start()
        await rig.cache.wait_synced()
        with pytest.raises(ValueError, match="no index 'colour': add it with add_index first"):
            rig.cache.by(by_colour, "red")
        rig.cache.add_index(by_colour)
        rig.cache.add_index(by_colour)
        assert rig.cache.keys_by(by_colour, "red") == (_key("a"),)
        await rig.cache.wait_seen(await rig.change("a", colour="blue"))
        assert (rig.cache.keys_by(by_colour, "red"), rig.cache.keys_by(by_colour, "blue")) == ((), (_key("a"),))
        with pytest.raises(ValueError, match="another index named 'colour'"):
            rig.cache.add_index(Index("colour", lambda stored: ()))

    play(story)


def test_who_subscribes_late_is_told_what_is_there_and_nothing_after_leaving(play: Play) -> None:
    async def story(rig: Rig) -> None:
        await rig.create("a")
        rig.start()
        await rig.cache.wait_synced()
        told: list[str] = []

        def note(change: Change[ConfigMap]) -> None:
            told.append(change.key.name)

        leave = rig.cache.subscribe(note)
        await rig.cache.wait_seen(await rig.create("b"))
        leave()
        await rig.cache.wait_seen(await rig.create("c"))
        assert told == ["a", "b"]

    play(story)


def test_a_handler_that_fails_keeps_nothing_from_the_others(play: Play) -> None:
    async def story(rig: Rig) -> None:
        def fail(_: Change[ConfigMap]) -> None:
            raise RuntimeError("a bug")

        rig.cache.subscribe(fail)
        later: list[str] = []
        rig.cache.subscribe(lambda change: later.append(change.key.name))
        rig.start()
        await rig.caught_up()
        rig.check()
        assert len(later) == 1

    play(story)


def test_caches_are_shared_and_started_also_when_they_come_later(play: Play) -> None:
    async def story(rig: Rig) -> None:
        caches = Caches(rig.direct, StillWorld())
        maps = caches.of(CONFIG_MAPS)
        assert caches.of(CONFIG_MAPS) is maps
        assert caches.of(CONFIG_MAPS, Selection(namespace="default")) is not maps
        async with rig.running(caches):
            await caches.wait_synced()
            secrets = caches.of(SECRETS)
            await secrets.wait_synced()
            assert maps.has_synced and secrets.has_synced

    play(story)


def test_the_collector_comes_back_after_the_outermost(play: Play) -> None:
    assert gc.isenabled()
    with pytest.raises(RuntimeError), collector_off():
        with collector_off():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise RuntimeError
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_off():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_every_series_is_there_from_zero(play: Play) -> None:
    async def story(rig: Rig) -> None:
        for result in ("listed", "stale", "expired", "failed"):
            assert rig.value("herder_cache_lists_total", result=result) == 0
        for result in ("ended", "broken", "expired", "silent"):
            assert rig.value("herder_cache_watch_ends_total", result=result) == 0
        for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            assert rig.value("herder_cache_events_total", type=kind) == 0
        for metric in ("repeated_events_total", "unreadable_total", "objects", "resource_version"):
            assert rig.value(f"herder_cache_{metric}") == 0
        await rig.create("a")
        rig.start()
        await rig.cache.wait_synced()
        assert rig.value("herder_cache_objects") == 1
        assert rig.value("herder_cache_resource_version") == rig.inside.store.revision

    play(story)
