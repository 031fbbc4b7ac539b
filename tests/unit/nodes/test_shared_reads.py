"""When pods may share what was read, and when each has to ask."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from herder.api.core import ConfigMap, Pod
from herder.kube.cache import Cache
from herder.kube.client import Client
from herder.kube.errors import Unreachable
from herder.kube.resources import CONFIG_MAPS, Key
from herder.nodes import shared_reads
from herder.nodes.shared_reads import SharedReads

BOOT = Key("n", "boot")


class Pods:
    """How far a cache is, and in which state it has each pod."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.states: dict[str, int] = {}

    def add(self, name: str, version: int) -> Pod:
        self.states[name] = version
        self.version = max(self.version, version)
        return msgspec.convert({"metadata": {"namespace": "n", "name": name}}, Pod)

    def stored(self, key: Key) -> Any:
        class State:
            version = self.states[key.name]

        return State() if key.name in self.states else None


class Server:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.content: str | None = "first"
        self.breaks = False
        self.goes = asyncio.Event()
        self.goes.set()

    async def find(self, resource: Any, key: Key) -> ConfigMap | None:
        self.asked += 1
        content = self.content
        await self.goes.wait()
        if self.breaks:
            raise Unreachable("nobody is there")
        return msgspec.convert({"data": {"kernel": content}}, ConfigMap) if content is not None else None


class Rig:
    def __init__(self) -> None:
        self.server, self.pods = Server(), Pods(10)
        self.reads = SharedReads(cast(Client, self.server))
        self.reads.follow(cast(Cache[Pod], self.pods))

    async def read(self, pod: Pod) -> str | None:
        found = await self.reads.find(CONFIG_MAPS, BOOT, pod)
        return found.data["kernel"] if found is not None else None


async def test_pods_that_were_known_when_the_read_began_share_it() -> None:
    rig = Rig()
    crowd = [rig.pods.add(f"pod-{number}", 10 + number) for number in range(50)]
    assert await asyncio.gather(*(rig.read(pod) for pod in crowd[:25])) == ["first"] * 25
    assert [await rig.read(pod) for pod in crowd] == ["first"] * 50
    assert rig.server.asked == 1


async def test_what_was_written_before_a_pod_is_what_it_gets() -> None:
    rig = Rig()
    assert await rig.read(rig.pods.add("early", 11)) == "first"
    rig.server.content = "second"
    late = rig.pods.add("late", 12)
    assert await rig.read(late) == "second"
    assert await rig.read(late) == "second" and rig.server.asked == 2


async def test_a_read_that_is_under_way_is_not_good_for_who_comes_after() -> None:
    rig = Rig()
    rig.server.goes.clear()
    early = asyncio.create_task(rig.read(rig.pods.add("early", 11)))
    await asyncio.sleep(0.01)
    rig.server.content = "second"
    late = asyncio.create_task(rig.read(rig.pods.add("late", 12)))
    await asyncio.sleep(0)
    rig.server.goes.set()
    assert (await early, await late) == ("first", "second")


async def test_what_is_missing_is_asked_for_again() -> None:
    rig = Rig()
    rig.server.content = None
    pod = rig.pods.add("pod", 11)
    assert await rig.read(pod) is None
    rig.server.content = "there"
    assert await rig.read(pod) == "there"


async def test_what_failed_is_asked_for_again() -> None:
    rig = Rig()
    rig.server.breaks = True
    pod = rig.pods.add("pod", 11)
    with pytest.raises(Unreachable):
        await rig.read(pod)
    rig.server.breaks = False
    assert await rig.read(pod) == "first"


async def test_who_is_cancelled_leaves_it_to_the_others() -> None:
    rig = Rig()
    rig.server.goes.clear()
    first, second = rig.pods.add("a", 11), rig.pods.add("b", 12)
    waiting = [asyncio.create_task(rig.read(pod)) for pod in (first, second)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    await asyncio.sleep(0.01)
    rig.server.goes.set()
    assert await waiting[1] == "first" and rig.server.asked == 1


async def test_a_server_that_went_back_in_time_is_asked_again() -> None:
    """Restored from a backup: what is version 11 now is not what it was."""
    rig = Rig()
    await rig.read(rig.pods.add("pod", 20))
    rig.server.content, rig.pods.version = "restored", 11
    rig.pods.states["pod"] = 11
    assert await rig.read(rig.pods.add("pod", 11)) == "restored"


async def test_nothing_is_kept_for_longer_than_a_crowd_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_reads, "KEPT", 0.01)
    rig = Rig()
    pod = rig.pods.add("pod", 11)
    await rig.read(pod)
    await asyncio.sleep(0.05)
    assert await rig.read(pod) == "first" and rig.server.asked == 2


async def test_nothing_is_shared_where_nobody_says_which_pods_are_known() -> None:
    rig = Rig()
    alone = SharedReads(cast(Client, rig.server))
    pod = rig.pods.add("pod", 11)
    for _ in range(2):
        await alone.find(CONFIG_MAPS, BOOT, pod)
    assert rig.server.asked == 2
