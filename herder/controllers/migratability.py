"""Keeps the host-model migratability level of every schedulable node, as a label (seed 002).

The levels are counted with every event of a node, which costs next to nothing; what costs are writes. A node that has no label gets
it soon, and one that takes no guests any more loses it soon. A label whose number is only another one now waits until the
cluster is quiet: while thousands of nodes join, each of them changes the numbers of all.
"""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from herder.api import labels, reasons
from herder.api.core import Node
from herder.controllers.hands import Hands
from herder.controllers.settings import ClusterSettings
from herder.kube.bucket import Bucket, Rate
from herder.kube.cache import Change, Stored
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.errors import NotFound, Unreadable
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import NODES, Key
from herder.rules.configuration import migration_configuration
from herder.rules.migratability import Levels, Profile, counted
from herder.rules.migratability.starting import required_level
from herder.rules.migratability.waiting import out_of_reach
from herder.rules.plans import Event

WORKERS = 8
# All nodes are looked through for labels to write: at most once in so many seconds.
SOON = 1.0
# Seconds without a change of what is counted, after which numbers are corrected; and how long they may be wrong at most.
QUIET = 3.0
LONGEST = 60.0
WRITES = Rate(burst=100, per_second=100.0)
# No node has an empty name.
EVERYBODY = Key("", "")


class Pace(msgspec.Struct, frozen=True):
    soon: float = SOON
    quiet: float = QUIET
    longest: float = LONGEST
    writes: Rate = WRITES


class Migratability:
    name = "migratability"

    def __init__(self, kit: Kit, queue: Queue, pace: Pace | None = None) -> None:
        self._hands = Hands(kit.client, kit.recorder)
        self._nodes = kit.caches.of(NODES)
        self._settings = ClusterSettings(kit)
        self._queue = queue
        self._pace = pace or Pace()
        self._clock = asyncio.get_running_loop().time
        self._bucket = Bucket(self._pace.writes, self._clock())
        self.levels = Levels()
        self._changed_at = self._clock()
        # Since when some label has a number that is not right any more.
        self._wrong_since: float | None = None
        self._told = ""

    @classmethod
    def start(cls, kit: Kit) -> Work:
        queue = kit.queue(cls.name)
        self = cls(kit, queue)
        self._nodes.subscribe(self._node_changed)
        self._settings.subscribe(lambda: queue.add(EVERYBODY))
        return kit.work(self, queue, WORKERS, of=self._nodes)

    def _node_changed(self, change: Change[Node]) -> None:
        """Nodes speak often. What matters is their processor, whether they take guests, and their label."""
        if self.levels.put(change.key.name, _counted(change.new)):
            self._changed_at = self._clock()
        elif self._outdated(change.key) is None:
            return
        self._queue.add_after(EVERYBODY, self._pace.soon)

    async def reconcile(self, key: Key) -> Result:
        if key == EVERYBODY:
            return self._look_through()
        await self._write(key)
        return DONE

    def _look_through(self) -> Result:
        """Who has to be written now, and when to look again."""
        now, pace, wanted = self._clock(), self._pace, self.levels.all()
        missing, corrections = self._wrong(wanted)
        since = self._wrong_since if self._wrong_since is not None else now
        due = min(self._changed_at + pace.quiet, since + pace.longest)
        for key in missing if now < due else (*missing, *corrections):
            self._queue.add(key)
        if now < due:
            self._wrong_since = since if corrections else None
            return Later(due - now)
        self._wrong_since = None
        self._tell(max(wanted.values(), default=None))
        return DONE

    def _wrong(self, wanted: dict[str, int]) -> tuple[list[Key], list[Key]]:
        """Those that lack a label or have one too many, and those whose number is another one."""
        missing: list[Key] = []
        corrections: list[Key] = []
        for key in self._nodes.keys():  # noqa: SIM118 - not a dict
            stored = self._nodes.stored(key)
            level, label = wanted.get(key.name), _label(stored) if stored is not None else None
            if label != _text(level):
                (missing if label is None or level is None else corrections).append(key)
        return missing, corrections

    def _tell(self, best: int | None) -> None:
        kubevirt = self._settings.kubevirt()
        sentence = out_of_reach(required_level(migration_configuration(kubevirt)), best)
        if kubevirt is not None and sentence and sentence != self._told:
            self._hands.tell(kubevirt, (Event("Warning", reasons.MIGRATABILITY_LEVEL_NOT_REACHED, sentence),))
        self._told = sentence

    async def _write(self, key: Key) -> None:
        """What is right when it is written, not when it was asked for."""
        if self._outdated(key) is None:
            return
        await asyncio.sleep(self._bucket.reserve(self._clock()))
        stored = self._outdated(key)
        if stored is None:
            return
        with contextlib.suppress(NotFound):
            label = {labels.MIGRATABILITY_LEVEL: _text(self.levels.level(key.name))}
            await self._hands.patch(self._nodes, stored, {"metadata": {"labels": label}})

    def _outdated(self, key: Key) -> Stored[Node] | None:
        """The node, where its label is not what it should be."""
        stored = self._nodes.stored(key)
        return stored if stored is not None and _label(stored) != _text(self.levels.level(key.name)) else None


def _label(stored: Stored[Node]) -> str | None:
    return stored.labels.get(labels.MIGRATABILITY_LEVEL)


def _text(level: int | None) -> str | None:
    return None if level is None else str(level)


def _counted(stored: Stored[Node] | None) -> Profile | None:
    """Nobody can be started on a node that cannot be understood."""
    try:
        return counted(stored.view) if stored is not None else None
    except Unreadable:
        return None
