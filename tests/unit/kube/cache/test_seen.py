"""Whether a cache has caught up with a write of ours."""

from __future__ import annotations

import asyncio

import pytest

from herder.kube.client import Selection
from herder.kube.errors import Unreadable
from herder.kube.resources import CONFIG_MAPS, Key
from tests.unit.kube.cache.conftest import Play
from tests.unit.kube.cache.rig import Rig


def test_a_write_is_seen_when_the_cache_shows_it_and_not_before(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        version = await rig.create("a")
        assert not rig.cache.has_seen(version)
        assert rig.cache.get(Key("default", "a")) is None
        await rig.cache.wait_seen(version)
        assert rig.cache.has_seen(version)
        assert rig.cache.get(Key("default", "a")) is not None

    play(story)


def test_a_list_counts_as_seen(play: Play) -> None:
    async def story(rig: Rig) -> None:
        version = await rig.create("a")
        waiting = asyncio.create_task(rig.cache.wait_seen(version))
        await asyncio.sleep(100)
        assert not waiting.done()
        rig.start()
        await waiting

    play(story)


def test_a_write_that_the_selection_leaves_out_is_seen_within_seconds(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        version = await rig.create("other")
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(rig.cache.wait_seen(version) for _ in range(3)))
        assert asyncio.get_running_loop().time() - began < 10
        assert len(rig.cache) == 0
        assert len(rig.faults.streams) == 2

    play(story, Selection(labels="name=mine"))


def test_a_server_that_does_not_say_how_far_it_is_is_asked_again(play: Play) -> None:
    """A busy one may end a watch without the word that it owes."""

    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        rig.faults.wordless = 2
        began = asyncio.get_running_loop().time()
        await rig.cache.wait_seen(await rig.create("other"))
        assert asyncio.get_running_loop().time() - began < 20
        assert len(rig.faults.streams) == 4

    play(story, Selection(labels="name=mine"))


def test_a_server_that_is_away_is_not_asked_all_the_time_how_far_it_is(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        rig.faults.silent = True
        rig.faults.drop()
        waiting = asyncio.create_task(rig.cache.wait_seen(await rig.create("other")))
        await asyncio.sleep(10)
        rig.faults.silent, rig.faults.refuse = False, 8
        rig.faults.drop()
        await waiting
        assert rig.faults.refuse == 0
        assert len(rig.faults.streams) < 15
        assert asyncio.get_running_loop().time() > 20, "longer and longer between"

    play(story, Selection(labels="name=mine"))


def test_nobody_is_asked_for_one_who_has_given_up(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(rig.cache.wait_seen("999999999"), 8)
        await asyncio.sleep(10)
        asked = len(rig.faults.streams)
        await asyncio.sleep(120)
        assert len(rig.faults.streams) == asked

    play(story, Selection(labels="name=mine"))


def test_a_write_that_makes_an_object_leave_the_selection_is_a_deletion(play: Play) -> None:
    async def story(rig: Rig) -> None:
        await rig.create("mine")
        rig.start()
        await rig.cache.wait_synced()
        left = await rig.direct.patch(CONFIG_MAPS, Key("default", "mine"), {"metadata": {"labels": {"name": "other"}}})
        await rig.cache.wait_seen(left.metadata.resource_version or "")
        assert rig.witness.said == [("added", "mine"), ("deleted", "mine")]

    play(story, Selection(labels="name=mine"))


def test_a_delete_is_seen_when_the_object_is_gone(play: Play) -> None:
    async def story(rig: Rig) -> None:
        await rig.create("a")
        rig.start()
        await rig.cache.wait_synced()
        one = rig.cache.get(Key("default", "a"))
        assert one is not None
        waiting = asyncio.create_task(rig.cache.wait_gone(Key("default", "a"), one.uid))
        await asyncio.sleep(1)
        assert not waiting.done()
        await rig.delete("a")
        await rig.create("a")
        await waiting
        await rig.cache.wait_gone(Key("default", "never-was"))

    play(story)


def test_a_delete_that_waits_for_finalizers_is_seen_when_it_is_marked(play: Play) -> None:
    async def story(rig: Rig) -> None:
        metadata = {"name": "held", "finalizers": ["example.com/hold"], "labels": {"name": "held"}}
        await rig.direct.create(CONFIG_MAPS, {"metadata": metadata}, "default")
        rig.start()
        await rig.cache.wait_synced()
        await rig.delete("held")
        await rig.cache.wait_gone(Key("default", "held"))
        await rig.direct.patch(CONFIG_MAPS, Key("default", "held"), {"metadata": {"finalizers": None}})

    play(story)


def test_one_who_gives_up_waiting_leaves_nothing_behind(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(rig.cache.wait_seen("999999999"), 30)
        await rig.caught_up()

    play(story)


def test_what_is_no_resource_version_is_refused_in_words(play: Play) -> None:
    async def story(rig: Rig) -> None:
        with pytest.raises(Unreadable, match="resourceVersion: Invalid value: 'abc': must be a whole number"):
            rig.cache.has_seen("abc")

    play(story)
