"""Whatever happens to objects and connections: in the end the cache has what the server has, and so has who listened to it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herder.kube.errors import AlreadyExists, Expired, NotFound, ServerFailed
from tests.examples import examples
from tests.unit.kube.cache.conftest import Play
from tests.unit.kube.cache.rig import Rig
from tests.unit.kube.cache.test_lists import list_now

NAMES = ("a", "b", "c")
WRITES = ("create", "create", "change", "delete", "replace", "relist")
FAULTS = ("drop", "silence", "lag", "forget", "expire", "fail", "bookmark", "pages")
# One flat list: hypothesis draws evenly from that, and not from choices of choices.
STEPS = st.sampled_from(
    [(what, name) for what in WRITES for name in NAMES]
    + [(what, "") for what in FAULTS]
    + [("refuse", "1"), ("refuse", "3")]
    + [("break", after) for after in ("0", "300", "700", "1500")]
    + [("times", often) for often in ("1", "2", "3")]
)
# Calls into the same process do not give the cache its turn: without a pause it sees several steps at once.
PAUSES = st.sampled_from([0.0, 0.01, 0.01, 1.0, None])
Steps = list[tuple[tuple[str, str], float | None]]


class Player:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.count = 0

    async def step(self, what: str, about: str) -> None:
        self.count += 1
        with suppress(AlreadyExists, NotFound):
            await getattr(self, f"do_{what}")(about)

    async def do_create(self, name: str) -> None:
        await self.rig.create(name, count=str(self.count))

    async def do_change(self, name: str) -> None:
        await self.rig.change(name, count=str(self.count))

    async def do_delete(self, name: str) -> None:
        await self.rig.delete(name)

    async def do_replace(self, name: str) -> None:
        await self.rig.delete(name)
        await self.rig.create(name, count=str(self.count))

    async def do_drop(self, _: str) -> None:
        self.rig.faults.drop()

    async def do_refuse(self, often: str) -> None:
        self.rig.faults.refuse = int(often)
        self.rig.faults.drop()

    async def do_break(self, after: str) -> None:
        self.rig.faults.bytes_left = int(after)

    async def do_times(self, times: str) -> None:
        self.rig.faults.times = int(times)

    async def do_silence(self, _: str) -> None:
        self.rig.faults.silent = True
        self.rig.faults.drop()
        await asyncio.sleep(1)
        self.rig.faults.silent = False

    async def do_lag(self, _: str) -> None:
        """The next list comes from a server that is behind."""
        self.rig.faults.stale = [await list_now(self.rig)]

    async def do_relist(self, name: str) -> None:
        """What happens while history is lost is known only from the list."""
        self.rig.faults.answers = [Expired(410, "Expired", "too old resource version")]
        self.rig.faults.drop()
        await self.do_replace(name)

    async def do_forget(self, _: str) -> None:
        self.rig.forget_history()

    async def do_expire(self, _: str) -> None:
        self.rig.faults.answers = [Expired(410, "Expired", "too old resource version")]
        self.rig.faults.drop()

    async def do_fail(self, _: str) -> None:
        self.rig.faults.answers = [ServerFailed(503, "ServiceUnavailable", "not now")] * 2
        self.rig.faults.drop()

    async def do_bookmark(self, _: str) -> None:
        await asyncio.sleep(61)

    async def do_pages(self, _: str) -> None:
        self.rig.faults.pages_only = not self.rig.faults.pages_only


@pytest.mark.slow
@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(before=st.lists(st.sampled_from(NAMES), unique=True), steps=st.lists(st.tuples(STEPS, PAUSES), min_size=10, max_size=40))
def test_the_cache_ends_with_what_the_server_has(play: Play, before: list[str], steps: Steps) -> None:
    async def story(rig: Rig) -> None:
        for name in before:
            await rig.create(name)
        rig.start()
        await rig.cache.wait_synced()
        player = Player(rig)
        for (what, about), pause in steps:
            await player.step(what, about)
            if pause is not None:
                await asyncio.sleep(pause)
        rig.faults.times, rig.faults.bytes_left, rig.faults.refuse = 1, -1, 0
        await rig.caught_up()
        rig.check()

    play(story)
