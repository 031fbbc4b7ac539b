"""A cache and its server: through restarts, lost connections and lost history, nothing is missed and nothing comes twice."""

from __future__ import annotations

import asyncio

import pytest

from herder.kube.errors import Forbidden, ServerFailed
from tests.unit.kube.cache.conftest import Play
from tests.unit.kube.cache.rig import Rig


def test_what_is_there_comes_first_then_what_happens(play: Play) -> None:
    async def story(rig: Rig) -> None:
        await rig.create("b")
        await rig.create("a")
        rig.start()
        await rig.cache.wait_synced()
        assert rig.witness.said == [("added", "a"), ("added", "b")]
        await rig.change("a", k="1")
        await rig.delete("b")
        await rig.caught_up()
        assert rig.witness.said[2:4] == [("changed", "a"), ("deleted", "b")]
        rig.check()

    play(story)


@pytest.mark.parametrize("pages_only", [False, True])
def test_a_list_after_lost_history_tells_only_what_differs(play: Play, pages_only: bool) -> None:
    async def story(rig: Rig) -> None:
        rig.faults.pages_only = pages_only
        for name in ("same", "changed", "gone", "replaced"):
            await rig.create(name)
        rig.start()
        await rig.cache.wait_synced()
        rig.witness.said.clear()
        rig.faults.refuse = 1
        rig.faults.drop()
        await rig.change("changed", k="1")
        await rig.change("changed", k="2")
        await rig.delete("gone")
        await rig.delete("replaced")
        await rig.create("replaced")
        await rig.create("new")
        rig.forget_history()
        await rig.caught_up()
        told = [("deleted", "gone"), ("changed", "changed"), ("added", "new"), ("deleted", "replaced"), ("added", "replaced")]
        assert [said for said in rig.witness.said if not said[1].startswith("marker")] == told
        assert rig.value("herder_cache_lists_total", result="listed") == 2
        assert rig.value("herder_cache_watch_ends_total", result="expired") == 1
        rig.check()

    play(story)


def test_a_lost_connection_is_resumed_where_it_was(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        for number in range(5):
            rig.faults.drop()
            await rig.create(f"while-away-{number}")
            await rig.delete(f"while-away-{number}")
        await rig.caught_up()
        assert len([said for said in rig.witness.said if said[1].startswith("while-away")]) == 10
        assert rig.value("herder_cache_lists_total", result="listed") == 1
        rig.check()

    play(story)


def test_a_watch_that_the_server_ends_goes_on_at_once(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await rig.until(lambda: len(rig.faults.streams) >= 4)
        # With the middle of random numbers a watch is asked for seven and a half minutes: nothing was waited for between them.
        assert {call.query["timeoutSeconds"] for call in rig.faults.streams} == {"450"}
        assert loop.time() - began == pytest.approx(3 * 450, abs=2)
        assert rig.value("herder_cache_watch_ends_total", result="broken") == 0

    play(story)


def test_a_server_that_is_away_is_asked_less_and_less_often(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.faults.refuse = 1000
        rig.start()
        await asyncio.sleep(10)
        assert 4 <= len(rig.faults.calls) <= 8
        before = len(rig.faults.calls)
        await asyncio.sleep(300)
        assert 9 <= len(rig.faults.calls) - before <= 15
        rig.faults.refuse = 0
        await rig.cache.wait_synced()

    play(story)


@pytest.mark.parametrize("error", [Forbidden(403, "Forbidden", "no"), ServerFailed(503, "ServiceUnavailable", "later")])
def test_a_server_that_says_no_is_asked_again(play: Play, error: Forbidden | ServerFailed) -> None:
    async def story(rig: Rig) -> None:
        rig.faults.answers = [error] * 3
        rig.start()
        await rig.cache.wait_synced()
        assert rig.value("herder_cache_lists_total", result="failed") == 3

    play(story)


def test_a_connection_that_says_nothing_for_ever_is_given_up(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        rig.faults.silent = True
        rig.faults.drop()
        await asyncio.sleep(1)
        await rig.create("unheard")
        rig.faults.silent = False
        began = asyncio.get_running_loop().time()
        await rig.caught_up()
        assert asyncio.get_running_loop().time() - began < 200
        rig.check()

    play(story)


def test_a_list_that_never_ends_is_given_up(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.faults.silent = True
        rig.start()
        await asyncio.sleep(100)
        rig.faults.silent = False
        await asyncio.wait_for(rig.cache.wait_synced(), 200)

    play(story)


def test_a_quiet_but_living_connection_is_kept(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        await asyncio.sleep(3600)
        assert rig.value("herder_cache_watch_ends_total", result="silent") == 0
        assert len(rig.faults.streams) == pytest.approx(3600 / 450, abs=1)

    play(story)


def test_events_that_come_twice_count_once(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.start()
        await rig.cache.wait_synced()
        rig.faults.times = 3
        await rig.create("a")
        await rig.delete("a")
        await rig.create("a")
        await rig.caught_up()
        assert rig.witness.said[:3] == [("added", "a"), ("deleted", "a"), ("added", "a")]
        repeated = rig.value("herder_cache_repeated_events_total")
        assert repeated is not None and repeated >= 6
        rig.check()

    play(story)


@pytest.mark.parametrize("left", [0, 10, 100, 400, 900])
def test_a_connection_that_breaks_off_anywhere_loses_nothing(play: Play, left: int) -> None:
    async def story(rig: Rig) -> None:
        for name in ("a", "b", "c"):
            await rig.create(name)
        rig.faults.bytes_left = left
        rig.start()
        await rig.cache.wait_synced()
        rig.faults.bytes_left = left
        await rig.change("b", k="1")
        await rig.delete("c")
        await rig.caught_up()
        rig.check()

    play(story)


def test_events_may_come_in_any_pieces(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.faults.piece = 7
        await rig.create("a")
        rig.start()
        await rig.change("a", k="1")
        await rig.caught_up()
        rig.check()

    play(story)


def test_an_ended_cache_goes_on_where_it_was(play: Play) -> None:
    async def story(rig: Rig) -> None:
        await rig.create("a")
        rig.start()
        await rig.cache.wait_synced()
        await rig.stop()
        await rig.change("a", k="1")
        rig.start()
        await rig.caught_up()
        assert rig.witness.said[:2] == [("added", "a"), ("changed", "a")]
        assert rig.value("herder_cache_lists_total", result="listed") == 1

    play(story)
