"""Lists: as a stream, in pages where there is nothing better, and never back in time."""

from __future__ import annotations

import pytest

from herder.kube.errors import Expired
from herder.kube.resources import CONFIG_MAPS
from herder.kube.transport import Call
from tests.unit.kube.cache.conftest import Play
from tests.unit.kube.cache.rig import Rig


async def list_now(rig: Rig) -> bytes:
    """What a list as the beginning of a watch would send now."""
    found = b""
    async for batch in rig.direct.watch_batches(CONFIG_MAPS, "", initial=True):
        for kind, raw in batch:
            found += b'{"type":"' + kind.encode() + b'","object":' + raw + b"}\n"
            if b"initial-events-end" in raw:
                return found
    raise AssertionError("the list did not end")


def test_a_list_is_the_beginning_of_the_watch(play: Play) -> None:
    async def story(rig: Rig) -> None:
        await rig.create("a")
        rig.start()
        await rig.caught_up()
        (call,) = rig.faults.calls
        assert (call.query["sendInitialEvents"], call.query["resourceVersionMatch"]) == ("true", "NotOlderThan")

    play(story)


def test_a_server_without_such_lists_is_read_in_pages(play: Play) -> None:
    async def story(rig: Rig) -> None:
        rig.faults.pages_only = True
        for number in range(501):
            await rig.create(f"n-{number:04d}")
        rig.start()
        await rig.caught_up()
        lists = [call.query for call in rig.faults.calls if "watch" not in call.query]
        assert [query.get("limit") for query in lists] == ["500", "500"]
        assert len(rig.cache) == 502
        # The items of a list do not say what they are. Those of the cache do, however they came.
        assert all(
            stored.raw.startswith(b'{"kind":"ConfigMap","apiVersion":"v1"') for stored in list(rig.witness.has.values())[:500]
        )
        assert rig.cache.get(rig.cache.keys()[0]) is not None

    play(story)


@pytest.mark.slow
def test_pages_that_end_in_the_middle_are_read_all_at_once(play: Play) -> None:
    async def story(rig: Rig) -> None:
        async def give_up_history(call: Call) -> None:
            if "continue" in call.query:
                await rig.change("n-0000", k="1")
                rig.forget_history()

        rig.faults.pages_only, rig.faults.before = True, give_up_history
        for number in range(501):
            await rig.create(f"n-{number:04d}")
        rig.start()
        await rig.cache.wait_synced()
        lists = [call.query for call in rig.faults.calls if "watch" not in call.query]
        assert [(query.get("limit"), "continue" in query) for query in lists] == [("500", False), ("500", True), ("0", False)]
        assert rig.value("herder_cache_lists_total", result="listed") == 1
        await rig.caught_up()
        rig.check()

    play(story)


def test_a_list_older_than_what_was_seen_is_not_believed(play: Play) -> None:
    async def story(rig: Rig) -> None:
        await rig.create("a")
        old = await list_now(rig)
        rig.start()
        await rig.change("a", k="1")
        await rig.create("b")
        await rig.caught_up()
        rig.faults.stale = [old, old]
        rig.faults.answers = [Expired(410, "Expired", "too old")]
        rig.faults.drop()
        await rig.caught_up()
        assert rig.value("herder_cache_lists_total", result="stale") == 2
        assert ("deleted", "b") not in rig.witness.said
        rig.check()

    play(story)


def test_a_server_that_has_nothing_newer_is_believed_in_the_end(play: Play) -> None:
    async def story(rig: Rig) -> None:
        await rig.create("a")
        old = await list_now(rig)
        rig.start()
        await rig.create("b")
        await rig.caught_up()
        rig.faults.stale = [old] * 4
        rig.faults.answers = [Expired(410, "Expired", "too old")]
        rig.faults.drop()
        await rig.until(lambda: ("deleted", "b") in rig.witness.said)
        rig.witness.newest.clear()
        # As after a restore from a backup. Then the watch goes on from there, and finds what this server has.
        await rig.caught_up()
        rig.check()

    play(story)
