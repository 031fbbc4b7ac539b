"""Answers MigrationReviews by the very rules that `herder explain` asks.

Whoever may migrate in one namespace may ask, as often as they like: so the names in the queue are those of namespaces. Each is
answered a few reviews, then rests, longer the more its answers cost; another namespace never waits for more than those few.
"""

from __future__ import annotations

import asyncio
from itertools import islice

import msgspec
import structlog

from herder.api import reasons
from herder.api.kinds import MigrationReview
from herder.controllers.hands import Hands
from herder.controllers.reviews.snapshots import RecentSnapshot
from herder.controllers.settings import ClusterSettings, known_policies
from herder.kube.bucket import Bucket, Rate
from herder.kube.cache import Change, Stored, view_of
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.errors import KubeError, NotFound, Unreadable
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import INSTANCES, NAMESPACES, REVIEWS, Key
from herder.rules.plans import Document
from herder.rules.reviews import Cluster, Reviewed, answer, invalid, is_answered, refused

log = structlog.get_logger()
# Of one namespace, before it rests; and for how many seconds at least, or for so many times as long as the answers took.
AT_ONCE = 5
REST = 1.0
TIMES = 20
# Of all namespaces together.
ANSWERS = Rate(burst=50, per_second=50.0)


class MigrationReviews:
    name = "migration-reviews"

    def __init__(self, kit: Kit, queue: Queue) -> None:
        self._client = kit.client
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._reviews = kit.caches.of(REVIEWS)
        self._instances = kit.caches.of(INSTANCES)
        self._namespaces = kit.caches.of(NAMESPACES)
        self._settings = ClusterSettings(kit)
        self._policies = known_policies(kit)
        self._snapshot = RecentSnapshot(kit)
        self._queue = queue
        self._clock = asyncio.get_running_loop().time
        self._bucket = Bucket(ANSWERS, self._clock())
        # By namespace, each in the order in which they came: dicts for that order.
        self._unanswered: dict[str, dict[Key, None]] = {}
        self._rests_until: dict[str, float] = {}

    @classmethod
    def start(cls, kit: Kit) -> Work:
        queue = kit.queue(cls.name)
        self = cls(kit, queue)
        self._reviews.subscribe(self._review_changed)
        # One worker: namespaces take turns.
        return kit.work(self, queue)

    def _review_changed(self, change: Change[MigrationReview]) -> None:
        review = view_of(change.new)
        if review is None or review.being_deleted or is_answered(review):
            self._forget(change.key)
        else:
            self._unanswered.setdefault(change.key.namespace, {})[change.key] = None
            self._queue.add(Key("", change.key.namespace))

    def _forget(self, key: Key) -> None:
        waiting = self._unanswered.get(key.namespace, {})
        waiting.pop(key, None)
        if not waiting:
            self._unanswered.pop(key.namespace, None)

    async def reconcile(self, key: Key) -> Result:
        namespace = key.name
        rest = self._rests_until.get(namespace, 0.0) - self._clock()
        if rest > 0:
            return Later(rest)
        due = list(islice(self._unanswered.get(namespace, ()), AT_ONCE))
        if not due:
            self._rests_until.pop(namespace, None)
            return DONE
        spent = 0.0
        try:
            for review in due:
                spent += await self._answer(review)
        finally:
            self._rests_until[namespace] = self._clock() + max(REST, TIMES * spent)
        return Later(max(REST, TIMES * spent))

    async def _answer(self, key: Key) -> float:
        """How many seconds it took to find the answer. One that cannot be given is not tried again before all others were."""
        stored = self._reviews.stored(key)
        if stored is None:
            return 0.0
        await asyncio.sleep(self._bucket.reserve(self._clock()))
        try:
            status, spent = await self._find_answer(stored)
            await self._hands.show(self._reviews, stored, status)
        except Exception as error:
            self._forget(key)
            if isinstance(error, KubeError) and not error.passing:
                log.warning("a review cannot be answered", review=str(key), why=str(error))
                return 0.0
            self._unanswered.setdefault(key.namespace, {})[key] = None
            raise
        return spent

    async def _find_answer(self, stored: Stored[MigrationReview]) -> tuple[Document, float]:
        review = stored.view
        problem = invalid(review)
        if problem:
            return refused(review, reasons.INVALID, problem, self._world.now()), 0.0
        try:
            reviewed = await self._reviewed(review)
            cluster = Cluster(self._policies, self._settings.of_migrations(), await self._snapshot.get())
            began = self._clock()
            status = answer(review, reviewed, cluster, self._world.now())
            return status, self._clock() - began
        except (Unreadable, ValueError, msgspec.MsgspecError) as error:
            said = f"the VirtualMachineInstance {review.spec.vmi_name!r} cannot be read: {error}"
            return refused(review, reasons.INVALID, said, self._world.now()), 0.0

    async def _reviewed(self, review: MigrationReview) -> Reviewed | None:
        """That there is none is asked of the API server itself: whoever asks may have made it just now."""
        key = Key(review.namespace, review.spec.vmi_name)
        raw = self._instances.raw(key)
        if raw is None:
            try:
                raw = await self._client.get_raw(INSTANCES, key)
            except NotFound:
                return None
        namespace = self._namespaces.stored(Key("", review.namespace))
        labels = namespace.labels if namespace is not None else {}
        return Reviewed(INSTANCES.decode(raw), msgspec.json.decode(raw), labels)
