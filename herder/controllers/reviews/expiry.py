"""Clears MigrationReviews away: a question that was answered a while ago is asked again by a new one."""

from __future__ import annotations

from herder.controllers.hands import Hands
from herder.kube.cache import view_of
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.kit import Kit
from herder.kube.resources import REVIEWS, Key
from herder.rules.plans import Delete
from herder.rules.reviews import seconds_left


class ReviewExpiry:
    name = "migration-review-expiry"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._reviews = kit.caches.of(REVIEWS)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._reviews, queue)
        return kit.work(self, queue)

    async def reconcile(self, key: Key) -> Result:
        review = view_of(self._reviews.stored(key))
        if review is None or review.being_deleted:
            return DONE
        left = seconds_left(review, self._world.now())
        if left > 0:
            return Later(left)
        await self._hands.delete(self._reviews, key.namespace, Delete(review.name, review.uid))
        return DONE
