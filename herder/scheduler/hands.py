"""What the scheduler writes: bindings, conditions, chosen nodes of claims, and where reservations are. Each insists for a while
when nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from herder.api import reasons
from herder.api.backoff import doubled
from herder.api.core import Pod
from herder.api.kinds import ReservationView
from herder.api.labels import RESERVATION_ALLOCATED
from herder.api.storage import SELECTED_NODE
from herder.api.world import timestamp
from herder.kube.cache import Stored
from herder.kube.client import STRATEGIC_PATCH
from herder.kube.errors import Conflict, KubeError, NotFound
from herder.kube.kit import Kit
from herder.kube.resources import CLAIMS, PODS, RESERVATIONS, Key, Resource, written
from herder.rules.plans import Document
from herder.rules.reservations import allocation_text

BINDING = {"apiVersion": "v1", "kind": "Binding"}
TRIES = 5
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0


class Hands:
    def __init__(self, kit: Kit) -> None:
        self._client = kit.client
        self._world = kit.world
        self._recorder = kit.recorder

    async def bind(self, stored: Stored[Pod], node: str, reservation: ReservationView | None = None) -> bool:
        """Whether the pod is bound there now. False: it is gone, another one, or somebody else's; the watch will tell. An error
        that stays is raised. With a reservation pod and room change hands in one write."""
        key = stored.key
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        taken = {"annotations": {RESERVATION_ALLOCATED: allocation_text(reservation)}} if reservation is not None else {}
        metadata = {"name": key.name, "namespace": key.namespace, "uid": stored.uid, **taken}
        try:
            await _insist(lambda: self._client.post(PODS, key, "binding", {**BINDING, "metadata": metadata, "target": target}))
        except (NotFound, Conflict):
            # One of our own tries may have been heard, and only its answer lost.
            found = await self._client.find(PODS, key)
            return found is not None and found.uid == stored.uid and found.spec.node_name == node
        self._recorder.normal(stored.view, "Scheduled", f"Successfully assigned {key} to {node}", action="Binding")
        return True

    async def say_why(self, stored: Stored[Pod], message: str, reason: str = reasons.UNSCHEDULABLE) -> None:
        """The condition is written only when it says something new."""
        known = next((one for one in stored.view.status.conditions if one.type == "PodScheduled"), None)
        self._recorder.warning(stored.view, "FailedScheduling", message, action="Scheduling")
        if known is not None and (known.status, known.reason, known.message) == ("False", reason, message):
            return
        since = known.last_transition_time if known is not None and known.status == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": timestamp(since.timestamp() if since else self._world.now()),
        }
        patch = {"metadata": {"uid": stored.uid}, "status": {"conditions": [condition]}}
        try:
            await _insist(lambda: self._client.patch(PODS, stored.key, patch, subresource="status", content_type=STRATEGIC_PATCH))
        except (NotFound, Conflict):
            await self._unless_replaced(PODS, stored.key, stored.uid)

    async def show(self, stored: Stored[ReservationView], status: Document) -> bool:
        """Whether the reservation shows this now: only over the very state that it was made from."""
        identity = {"uid": stored.uid, "resourceVersion": str(stored.version)}
        wanted = {"metadata": identity, "status": status}
        try:
            await _insist(lambda: self._client.apply(written(RESERVATIONS), stored.key, wanted, subresource="status"))
        except (NotFound, Conflict):
            # One of our own tries may have been heard, and only its answer lost.
            found = await self._client.find(RESERVATIONS, stored.key)
            return found is not None and found.uid == stored.uid and _says(found, status)
        return True

    async def choose_node(self, claim: Key, uid: str, node: str) -> None:
        """For a volume that is made where its pod goes."""
        patch = {"metadata": {"uid": uid, "annotations": {SELECTED_NODE: node}}}
        try:
            await _insist(lambda: self._client.patch(CLAIMS, claim, patch))
        except (NotFound, Conflict):
            await self._unless_replaced(CLAIMS, claim, uid)

    async def _unless_replaced(self, resource: Resource[Any], key: Key, uid: str) -> None:
        """Raises, so that it is tried again, where the very object is still there: somebody was faster with something else, and
        what was to be said has not been heard."""
        found = await self._client.find(resource, key)
        if found is not None and found.uid == uid:
            raise Conflict(409, "Conflict", f"{resource.kind} {key} is being written by others")


def _says(reservation: ReservationView, status: Document) -> bool:
    shown = reservation.status
    return (shown.phase, shown.node_name, shown.message) == tuple(status.get(name) for name in ("phase", "nodeName", "message"))


async def _insist(send: Callable[[], Awaitable[object]]) -> None:
    """The same again, as long as what is wrong passes."""
    for pause in (doubled(FIRST_PAUSE, LONGEST_PAUSE, number) for number in range(TRIES - 1)):
        try:
            await send()
            return
        except KubeError as error:
            if not error.passing or isinstance(error, Conflict):
                raise
        await asyncio.sleep(pause)
    await send()
