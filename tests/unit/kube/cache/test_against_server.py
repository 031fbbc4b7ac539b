"""Whatever happens to objects and connections: in the end the cache has what the server has, and so has who listened to it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herder.kube.errors import AlreadyExists, Expired, NotFound, ServerFailed
from tests.unit.kube.cache.conftest import Play
from tests.unit.kube.cache.rig import Rig
from tests.unit.kube.cache.test_lists import list_now

NAMES = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["create", "change", "delete", "replace"]), NAMES),
    st.tuples(st.just("drop"), st.just("")),
    st.tuples(st.just("refuse"), st.sampled_from(["1", "3"])),
    st.tuples(st.just("break"), st.sampled_from(["0", "50", "300", "700", "1500"])),
    st.tuples(st.just("times"), st.sampled_from(["1", "2", "3"])),
    st.tuples(st.sampled_from(["silence", "lag", "forget", "expire", "fail", "wait", "bookmark", "pages"]), st.just("")),
)


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

    async def do_forget(self, _: str) -> None:
        self.rig.forget_history()

    async def do_expire(self, _: str) -> None:
        self.rig.faults.answers = [Expired(410, "Expired", "too old resource version")]
        self.rig.faults.drop()

    async def do_fail(self, _: str) -> None:
        self.rig.faults.answers = [ServerFailed(503, "ServiceUnavailable", "not now")] * 2
        self.rig.faults.drop()

    async def do_wait(self, _: str) -> None:
        await asyncio.sleep(0.5)

    async def do_bookmark(self, _: str) -> None:
        await asyncio.sleep(61)

    async def do_pages(self, _: str) -> None:
        self.rig.faults.pages_only = not self.rig.faults.pages_only


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(before=st.lists(NAMES, unique=True), steps=st.lists(STEPS, max_size=25))
def test_the_cache_ends_with_what_the_server_has(play: Play, before: list[str], steps: list[tuple[str, str]]) -> None:
    async def story(rig: Rig) -> None:
        for name in before:
            await rig.create(name)
        rig.start()
        player = Player(rig)
        for what, about in steps:
            await player.step(what, about)
        rig.faults.times, rig.faults.bytes_left, rig.faults.refuse = 1, -1, 0
        await rig.caught_up()
        rig.check()

    play(story)
