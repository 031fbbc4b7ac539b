"""Asks every node what it uses, again and again. No node can keep us from asking the others, whatever it says or does not say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from typing import NamedTuple

import msgspec
import structlog

from herder.net.occasional import Occasional
from herder.server.engine import Engine
from herder.server.kubelets import Kubelets, NodeAnswer, Place, SomebodyElse, place_of
from herder.server.request import ENGINE
from herder.server.resource_metrics.neighbours import Neighbours
from herder.server.resource_metrics.reading import ResourceMetricsReader, Unreadable, parts_of
from herder.server.status import ApiError
from herder.server.store import Record
from herder.server.store.records import key_of

log = structlog.get_logger()
PATH = "/metrics/resource"
EVERY = 15.0
# Whoever has just started need not wait so long for the second sample, which is the first that says something.
FIRST_AGAIN = 5.0
# Nodes that are asked at the same time; those that did not answer last time have few places of their own, and keep nobody waiting.
AT_ONCE = 16
DOUBTED_AT_ONCE = 4
# Between two of them, so that many nodes do not come all at once; so much less where there are more.
PAUSE = 0.05
PATIENCE = 10.0
# Some ten thousand containers.
LONGEST_ANSWER = 8 * 1024 * 1024


class _Named(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct):
    nodeName: str = ""
    containers: tuple[_Named, ...] = ()


class _Pod(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode_pod = msgspec.json.Decoder(_Pod).decode


class _Sample(NamedTuple):
    """What is read of one node."""

    node: str
    at: float
    reader: ResourceMetricsReader
    uids: dict[tuple[str, str], str]


class Sampler:
    def __init__(self, engine: Engine, kubelets: Kubelets, every: float = EVERY, first_again: float = FIRST_AGAIN) -> None:
        self._engine = engine
        self._kubelets = kubelets
        self._every = every
        self._first_again = first_again
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._doubted_turns = asyncio.Semaphore(DOUBTED_AT_ONCE)
        self._doubted: set[str] = set()
        self._neighbours = Neighbours()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._complaint = Occasional(log, "info")

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        first = True
        try:
            while True:
                began = loop.time()
                await self.round()
                every = self._first_again if first else self._every
                self._engine.samples.ready = not first
                first = False
                await asyncio.sleep(max(0.0, began + every - loop.time()))
        finally:
            for task in self._asking.values():
                task.cancel()

    async def round(self) -> None:
        """Everybody once; who has not answered the last time round is not asked again meanwhile. Who is slow is not waited for."""
        groups = await self._groups()
        pause = min(PAUSE, self._every / 2 / max(1, len(groups)))
        for names in groups:
            task = asyncio.create_task(self._ask(names), name=f"sample of node {names[0]}")
            self._asking |= dict.fromkeys(names, task)
            task.add_done_callback(lambda _, names=names: self._asked(names))
            await asyncio.sleep(pause)
        quick = {task for name, task in self._asking.items() if name not in self._doubted}
        if quick:
            await asyncio.wait(quick, timeout=min(PATIENCE, self._every / 4))

    async def _groups(self) -> list[tuple[str, ...]]:
        """All nodes of whom no answer is awaited, as they are asked together."""
        records = list(self._engine.store.scan("nodes"))
        names = frozenset(record.name for record in records)
        self._engine.samples.keep(names)
        self._doubted &= names
        self._neighbours.keep(names)
        for record in records:
            if self._neighbours.see(record):
                await asyncio.sleep(0)  # at the start all of them are new
        return self._neighbours.groups((one.name for one in records if one.name not in self._asking), self._doubted)

    def _asked(self, names: Iterable[str]) -> None:
        for name in names:
            self._asking.pop(name, None)

    async def _ask(self, names: tuple[str, ...]) -> None:
        async with self._doubted_turns if names[0] in self._doubted else self._turns:
            try:
                async with asyncio.timeout(PATIENCE):
                    await (self._sample(names[0]) if len(names) == 1 else self._sample_together(names))
            except (ApiError, Unreadable, TimeoutError) as error:
                # Who lies about where it is will be found out once each is asked by itself.
                if len(names) == 1 or not isinstance(error, SomebodyElse):
                    self._doubt(names, error)

    def _doubt(self, names: Iterable[str], error: Exception) -> None:
        for name in names:
            self._doubted.add(name)
            self._complaint("a node does not tell what it uses", node=name, error=str(error) or type(error).__name__)

    async def _sample(self, name: str) -> None:
        """Raises `ApiError` or `Unreadable`."""
        record = self._engine.store.get("nodes", name)
        if record is None:
            return
        answer = await self._answer(place_of(record.document()), name)
        sample = self._new_sample(name)
        try:
            async for piece in _bounded(answer):
                sample.reader.feed(piece)
                await asyncio.sleep(0)  # what is there already is given at once: others have their turn in between
        finally:
            answer.close()
        self._store(sample)

    async def _sample_together(self, names: tuple[str, ...]) -> None:
        """Of our own agents, who tell what they know of each. Raises `ApiError` or `Unreadable` where that is nothing of any."""
        record = self._engine.store.get("nodes", names[0])
        if record is None:
            return
        answer = await self._answer(place_of(record.document()), *names)
        try:
            text = b"".join([piece async for piece in _bounded(answer)])
        finally:
            answer.close()
        for name, part in parts_of(text, names).items():
            sample = self._new_sample(name)
            try:
                sample.reader.feed(part)
                self._store(sample)
            except Unreadable as error:
                self._doubt((name,), error)
            await asyncio.sleep(0)

    def _new_sample(self, name: str) -> _Sample:
        uids: dict[tuple[str, str], str] = {}
        reader = ResourceMetricsReader(lambda namespace, pod: self._containers(name, namespace, pod, uids))
        return _Sample(name, self._engine.world.now(), reader, uids)

    def _store(self, sample: _Sample) -> None:
        """Raises `Unreadable`."""
        self._engine.samples.store(sample.node, sample.reader.end(), sample.uids, sample.at)
        self._doubted.discard(sample.node)

    async def _answer(self, place: Place, *names: str) -> NodeAnswer:
        if self._neighbours.are_at(place):
            try:
                return await self._kubelets.get(msgspec.structs.replace(place, agents=True), PATH, {"node": names}, ENGINE)
            except SomebodyElse:
                self._neighbours.part(place)
                if len(names) > 1:
                    raise
        if len(names) > 1:
            raise Unreadable("it has left the place where others are")
        return await self._kubelets.get(place, PATH, {"node": names}, ENGINE)

    def _containers(self, node: str, namespace: str, name: str, uids: dict[tuple[str, str], str]) -> Collection[str] | None:
        """Whatever a node says counts for pods that are bound to it, and for no others."""
        record: Record | None = self._engine.store.get("pods", key_of(namespace, name))
        if record is None:
            return None
        spec = _decode_pod(record.raw).spec
        if spec.nodeName != node:
            return None
        uids[namespace, name] = record.uid
        return frozenset(container.name for container in spec.containers)


async def _bounded(answer: NodeAnswer) -> AsyncIterator[bytes]:
    """Raises `Unreadable` where it does not end."""
    size = 0
    async for piece in answer.pieces():
        size += len(piece)
        if size > LONGEST_ANSWER:
            raise Unreadable(f"it says more than {LONGEST_ANSWER} bytes")
        yield piece
