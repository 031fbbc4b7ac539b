"""Asks the API server, before anything is written or removed, whether it knows of the work that a pod claims to have.

Each object is read anew. Between the answer and the work things may change; what that can do is in docs/storage.md.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from herder.api import reasons
from herder.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from herder.api.imports import ImportDefinition
from herder.api.kinds import DataVolume
from herder.api.meta import Identified
from herder.kube.client import Client
from herder.kube.errors import Forbidden
from herder.kube.resources import CLAIMS, DATA_VOLUMES, VOLUMES, Key, Resource
from herder.nodes.runtimes.base import Refused
from herder.nodes.work import NotYet
from herder.rules.volumes.source import Source
from herder.rules.volumes.verification import (
    Filling,
    clearing_problem,
    data_volume_of,
    filling_problem,
    growing_problem,
    saving_problem,
    stranger_problem,
)

V = TypeVar("V", bound=Identified)
CLEARS, GROWS, SAVES = "delete", "grow", "save"


class Verifies(Protocol):
    async def check(self, pod: Pod, definition: ImportDefinition) -> None:
        """Raises `Refused` where nobody but the pod says so, and `NotYet` where that cannot be found out now."""
        ...


class Verification:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def check(self, pod: Pod, definition: ImportDefinition) -> None:
        try:
            problem = await self._problem(pod, definition)
        except Forbidden as error:
            why = f"the node may not read what vouches for this pod (`herder install` makes the role that it needs): {error}"
            raise NotYet(reasons.IMPORT_UNVERIFIED, why) from error
        if problem:
            raise Refused(reasons.IMPORT_FORBIDDEN, problem)

    async def _problem(self, pod: Pod, definition: ImportDefinition) -> str:
        if definition.action == SAVES:
            return saving_problem(pod, definition, *await self._volume_and_claim(definition.volume))
        if definition.action not in (CLEARS, GROWS):
            return await self._filling(pod, definition)
        if problem := stranger_problem(pod, definition):
            return problem
        volume, claim = await self._volume_and_claim(definition.volume)
        problem_of = clearing_problem if definition.action == CLEARS else growing_problem
        return problem_of(pod, definition, volume, claim)

    async def _filling(self, pod: Pod, definition: ImportDefinition) -> str:
        owner = data_volume_of(pod)
        if owner is None:
            return filling_problem(pod, definition, Filling())
        key = Key(pod.namespace, owner.name)
        volume = await self._find(DATA_VOLUMES, key)
        if volume is None or volume.uid != owner.uid:
            # Nothing else is looked up for one who names somebody else's.
            return filling_problem(pod, definition, Filling(volume))
        claim, target = await self._bound(key)
        return filling_problem(pod, definition, Filling(volume, claim, target, await self._source(volume)))

    async def _source(self, volume: DataVolume) -> Source | None:
        named = volume.spec.source.pvc
        if named is None:
            return None
        key = Key(named.namespace or volume.namespace, named.name)
        claim, found = await self._bound(key)
        return Source(key.namespace, key.name, claim, found)

    async def _volume_and_claim(self, name: str) -> tuple[PersistentVolume | None, PersistentVolumeClaim | None]:
        """The claim that the volume was made for, by its name."""
        volume = await self._find(VOLUMES, Key("", name))
        reference = volume.spec.claim_ref if volume is not None else None
        key = Key(reference.namespace or "", reference.name or "") if reference is not None else None
        return volume, await self._find(CLAIMS, key) if key is not None else None

    async def _bound(self, key: Key) -> tuple[PersistentVolumeClaim | None, PersistentVolume | None]:
        claim = await self._find(CLAIMS, key)
        # A claim may name any volume before it is bound; that one is not looked up for it.
        name = claim.spec.volume_name if claim is not None and claim.status.phase == "Bound" else ""
        return claim, await self._find(VOLUMES, Key("", name)) if name else None

    async def _find(self, resource: Resource[V], key: Key) -> V | None:
        return await self._client.find(resource, key)
