"""Lets the claims of machines' disks ask for as much as the machines' templates do. Growing them is the resizer's work."""

from __future__ import annotations

from herder.api import reasons
from herder.api.kinds import VirtualMachine
from herder.controllers.hands import Hands
from herder.kube.cache import Change
from herder.kube.controller import DONE, Later, Result, Work
from herder.kube.enqueue import enqueue
from herder.kube.errors import Forbidden, Invalid, NotFound
from herder.kube.kit import Kit
from herder.kube.queue import Queue
from herder.kube.resources import CLAIMS, DATA_VOLUMES, MACHINES, Key
from herder.rules.plans import Event
from herder.rules.volumes.template_sizes import larger_size

WORKERS = 4
# Whoever refuses it does so for a reason that lasts: the class does not allow it, or a quota.
ASK_AGAIN = 60.0


class TemplateSizes:
    name = "template-sizes"

    def __init__(self, kit: Kit) -> None:
        self._hands = Hands(kit.client, kit.recorder)
        self._machines = kit.caches.of(MACHINES)
        self._data_volumes = kit.caches.of(DATA_VOLUMES)
        self._claims = kit.caches.of(CLAIMS)

    @classmethod
    def start(cls, kit: Kit) -> Work:
        self, queue = cls(kit), kit.queue(cls.name)
        enqueue(self._data_volumes, queue)
        # A claim has the name of its DataVolume.
        enqueue(self._claims, queue)
        self._machines.subscribe(lambda change: _machine_changed(change, queue))
        return kit.work(self, queue, WORKERS, of=self._data_volumes)

    async def reconcile(self, key: Key) -> Result:
        volume, claim = self._data_volumes.get(key), self._claims.stored(key)
        owner = volume.controller if volume is not None else None
        if volume is None or claim is None or owner is None:
            return DONE
        machine = self._machines.get(Key(key.namespace, owner.name))
        size = larger_size(machine, volume, claim.view)
        if machine is None or not size:
            return DONE
        # With the version: a person may just have asked for more than the template does.
        asks = {"metadata": {"resourceVersion": str(claim.version)}, "spec": {"resources": {"requests": {"storage": size}}}}
        try:
            await self._hands.patch(self._claims, claim, asks)
        except NotFound:
            return DONE
        except (Forbidden, Invalid) as refusal:
            why = f"dataVolumeTemplate {volume.name} asks for {size}, and its claim may not grow: {refusal}"
            self._hands.tell(machine, (Event("Warning", reasons.VOLUME_RESIZE_FAILED, why),))
            return Later(ASK_AGAIN)
        return DONE


def _machine_changed(change: Change[VirtualMachine], queue: Queue) -> None:
    """Machines speak often. What matters is what they are to be."""
    old, new = change.old, change.new
    if new is None or (old is not None and old.view.metadata.generation == new.view.metadata.generation):
        return
    for template in new.view.spec.data_volume_templates or ():
        queue.add(Key(new.key.namespace, template.metadata.name))
