"""Keeps the status of the KubeVirt object: which version runs, and every setting that is in use. One that nobody reads says so."""

from __future__ import annotations

from importlib.metadata import version

from herder.controllers.hands import Hands
from herder.controllers.settings import ClusterSettings
from herder.kube.controller import DONE, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.kit import Kit
from herder.kube.resources import Key
from herder.rules.settings_status import settings_status


class SettingsStatus:
    name = "kubevirts"

    def __init__(self, kit: Kit) -> None:
        self._world = kit.world
        self._hands = Hands(kit.client, kit.recorder)
        self._cache = ClusterSettings(kit).cache
        self._version = version("herder")

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._cache, queue)
        return kit.work(self, queue, of=self._cache)

    async def reconcile(self, key: Key) -> Result:
        stored = self._cache.stored(key)
        if stored is not None and not stored.deleting:
            await self._hands.show(self._cache, stored, settings_status(stored.view, self._version, self._world.now()))
        return DONE
