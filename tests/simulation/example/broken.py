"""The same controller with mistakes that people make. The matrix has to find each of them, or it is worth nothing."""

from __future__ import annotations

import msgspec

from herder.kube.cache import BY_OWNER, owned
from herder.kube.controller import DONE, Result
from herder.kube.errors import KubeError, error_from
from herder.kube.kit import Kit
from herder.kube.resources import Key, key_of
from herder.kube.transport import Call
from tests.simulation.example.controller import FlockController
from tests.simulation.example.kind import FLOCKS, Flock
from tests.simulation.example.rules import Document, Plan, Sheep


class GeneratesNames(FlockController):
    """A child whose name does not follow from its parent's: whoever does not know that it made one makes another."""

    async def carry_out(self, flock: Flock, plan: Plan) -> None:
        missing = flock.spec.sheep - len(self.sheep.by(BY_OWNER, owned(flock.namespace, flock.uid)))
        status = {**plan.status, "sheep": flock.spec.sheep, "phase": "Resting"} if plan.status else None
        await super().carry_out(
            flock, Plan(create=plan.create[: max(missing, 0)], status=None if _is_said(flock, status) else status)
        )

    def document(self, flock: Flock, sheep: Sheep) -> Document:
        whole = super().document(flock, sheep)
        metadata = {name: value for name, value in whole["metadata"].items() if name != "name"}
        return {**whole, "metadata": {**metadata, "generateName": f"{sheep.name}-"}}


def _is_said(flock: Flock, status: Document | None) -> bool:
    return flock.status is not None and status is not None and flock.status.observed_generation == status["observedGeneration"]


class PutsStaleStatus(FlockController):
    """The whole object is put back as it was read, again and again until it is taken: what others have written since is lost."""

    async def write_status(self, flock: Flock, status: Document) -> None:
        whole = msgspec.json.decode(self.flocks.raw(key_of(flock)) or b"{}")
        while True:
            current = await self.client.get(FLOCKS, key_of(flock))
            whole["metadata"]["resourceVersion"] = current.metadata.resource_version
            body = msgspec.json.encode({**whole, "status": status})
            reply = await self.client.transport.send(Call("PUT", FLOCKS.path(*key_of(flock), "status"), body=body))
            if reply.status < 400:
                return
            if reply.status != 409:
                raise error_from(reply.status, reply.body)


class SaysNoGeneration(FlockController):
    """Nobody can tell which spec the status is about."""

    async def write_status(self, flock: Flock, status: Document) -> None:
        if flock.status is None or flock.status.phase != status["phase"] or flock.status.sheep != status["sheep"]:
            await super().write_status(flock, {name: value for name, value in status.items() if name != "observedGeneration"})


class ForgetsToTryAgain(FlockController):
    """What went wrong is taken for done."""

    async def reconcile(self, key: Key) -> Result:
        try:
            return await super().reconcile(key)
        except KubeError:
            return DONE


class ForgetsTheTime(FlockController):
    """Time alone would change the answer, and nobody looks again."""

    async def reconcile(self, key: Key) -> Result:
        await super().reconcile(key)
        return DONE


class CountsInMemory(FlockController):
    """What it has made is remembered, not looked up: after a restart it is made again, or never."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self.made: set[str] = set()

    async def create(self, flock: Flock, sheep: Sheep) -> None:
        if sheep.name not in self.made:
            self.made.add(sheep.name)
            await super().create(flock, sheep)


BROKEN = (GeneratesNames, PutsStaleStatus, SaysNoGeneration, ForgetsToTryAgain, ForgetsTheTime, CountsInMemory)
