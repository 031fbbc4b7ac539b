"""A tiny migration controller: it writes orders, and draws its conclusions from what both agents report. All that it knows is in
objects, so that it may die at any time."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.api.guest import MigrationOrder, MigrationReport, definition_of, order_of, report_of
from herder.api.kinds.migration_state import PolicySettings
from herder.kube.client import Client
from herder.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from herder.kube.resources import PODS, Key
from tests.simulation.machine import Machine
from tests.simulation.simulation import Simulation

CONTROLLER = "controller"
NAMESPACE = "default"
SOURCE, TARGET = Key(NAMESPACE, "source"), Key(NAMESPACE, "target")
MIGRATION = "migration-1"
LOOK_EVERY = 0.1
LOOK_AT_LEAST_EVERY = 5.0
Document = dict[str, Any]


class Wanted(msgspec.Struct):
    """What people want; as if it stood in a Migration object."""

    settings: PolicySettings = PolicySettings()
    source_node: str = "node-1"
    target_node: str = "node-2"
    # Why guests cannot come to the target by post-copy.
    no_post_copy: str = ""
    cancelled: bool = False
    # Nodes of which it is certain that nothing runs there.
    fenced: frozenset[str] = frozenset()


def controller(simulation: Simulation, wanted: Wanted) -> Machine:
    async def main(machine: Machine) -> None:
        orders = Orders(simulation.client(machine, CONTROLLER), wanted)
        seen, looked = -1.0, -LOOK_AT_LEAST_EVERY
        while True:
            # As a watch would tell it: nothing is asked for while nothing has changed.
            now = simulation.loop.time()
            if simulation.server.changed_at != seen or now - looked >= LOOK_AT_LEAST_EVERY:
                seen, looked = simulation.server.changed_at, now
                with contextlib.suppress(KubeError):
                    await orders.look()
            await asyncio.sleep(LOOK_EVERY)

    return simulation.machine(CONTROLLER, main)


class Orders:
    def __init__(self, client: Client, wanted: Wanted) -> None:
        self._client = client
        self._wanted = wanted

    async def look(self) -> None:
        source, target = await self._client.find(PODS, SOURCE), await self._client.find(PODS, TARGET)
        if source is None:
            return await self._without_source(target)
        report = report_of(source)
        told = _told(source)
        if target is None:
            return await self._without_target(source, told)
        if told is not None and told.failed:
            return await self._over(source, target)
        theirs = _told(target)
        if theirs is not None and theirs.taken_over:
            if told is not None and (told.completed or (report is not None and report.state == "HandedOver")):
                await self._delete(source)
            return None
        if told is not None and told.handed_over:
            return await self._pass_on(source, target, theirs)
        if source.status.phase in ("Succeeded", "Failed"):
            return await self._over(source, target)
        if target.status.phase in ("Succeeded", "Failed") or target.being_deleted:
            return await self._order(source, target, cancelled=True)
        if source.spec.node_name in self._wanted.fenced:
            return await self._fenced(source, target, theirs)
        if theirs is not None and theirs.address:
            return await self._order(source, target, address=theirs.address, cancelled=self._wanted.cancelled)
        return None

    async def _without_source(self, target: Pod | None) -> None:
        """It is gone, and its node has said so: nobody runs there. What waits without a grant will wait for ever."""
        theirs = _told(target) if target is not None else None
        if target is not None and not (theirs is not None and theirs.taken_over):
            await self._delete(target)

    async def _without_target(self, source: Pod, told: MigrationReport | None) -> None:
        if order_of(source) is not None:
            # There was one, and it is gone.
            if told is not None and (told.failed or told.handed_over):
                await self._take_away(source)
            else:
                await self._patch(source, msgspec.structs.replace(_order(source), cancelled=True))
            return
        report = report_of(source)
        if self._wanted.cancelled or report is None or report.state not in ("Running", "Paused") or source.being_deleted:
            return
        if labels.MIGRATION_UID in source.annotations:
            return
        await self._make_target(source)

    async def _make_target(self, source: Pod) -> None:
        report, definition = report_of(source), definition_of(source)
        assert report is not None and definition is not None
        await self._client.patch(PODS, SOURCE, {"metadata": {"annotations": {labels.MIGRATION_UID: MIGRATION}}})
        order = MigrationOrder(migration=MIGRATION, settings=self._wanted.settings, source_node=source.spec.node_name)
        incoming = msgspec.structs.replace(definition, incoming=report.started)
        annotations = {labels.GUEST: _json(incoming), labels.MIGRATION: _json(order)}
        if labels.PAUSE in source.annotations:
            annotations[labels.PAUSE] = source.annotations[labels.PAUSE]
        with contextlib.suppress(AlreadyExists):
            await self._client.create(PODS, pod_document(TARGET.name, self._wanted.target_node, annotations))

    async def _order(self, source: Pod, target: Pod, *, address: str = "", cancelled: bool) -> None:
        known = order_of(source)
        if known is None:
            if cancelled and not address:
                return await self._delete(target)
            known = MigrationOrder(
                migration=MIGRATION,
                settings=self._wanted.settings,
                target_pod=target.uid,
                target_node=target.spec.node_name,
                address=address,
            )
        wanted = msgspec.structs.replace(known, cancelled=known.cancelled or cancelled)
        if wanted != order_of(source):
            await self._patch(source, wanted)
        return None

    async def _over(self, source: Pod, target: Pod) -> None:
        """The source has said that nobody was moved."""
        await self._delete(target)
        await self._take_away(source)

    async def _pass_on(self, source: Pod, target: Pod, theirs: MigrationReport | None) -> None:
        """The source gave it away, and the target has not said yet that it has it."""
        if target.status.phase in ("Succeeded", "Failed") or target.being_deleted:
            return await self._take_away(source)
        if theirs is not None and theirs.has_memory and target.annotations.get(labels.RESUME) != MIGRATION:
            await self._client.patch(PODS, TARGET, {"metadata": {"annotations": {labels.RESUME: MIGRATION}}})
        return None

    async def _fenced(self, source: Pod, target: Pod, theirs: MigrationReport | None) -> None:
        if theirs is not None and theirs.has_memory:
            await self._pass_on(source, target, theirs)
        else:
            await self._delete(target)

    async def _patch(self, pod: Pod, order: MigrationOrder) -> None:
        patch: Document = {"metadata": {"uid": pod.uid, "annotations": {labels.MIGRATION: _json(order)}}}
        with contextlib.suppress(NotFound, Conflict):
            await self._client.patch(PODS, SOURCE, patch)

    async def _take_away(self, source: Pod) -> None:
        if labels.MIGRATION in source.annotations:
            patch: Document = {"metadata": {"uid": source.uid, "annotations": {labels.MIGRATION: None}}}
            with contextlib.suppress(NotFound, Conflict):
                await self._client.patch(PODS, SOURCE, patch)

    async def _delete(self, pod: Pod) -> None:
        if not pod.being_deleted:
            with contextlib.suppress(NotFound, Conflict):
                await self._client.delete(PODS, Key(NAMESPACE, pod.name), uid=pod.uid)


def pod_document(name: str, node: str, annotations: dict[str, str]) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "containers": [{"name": "compute", "image": "x"}],
        },
    }


def _told(pod: Pod) -> MigrationReport | None:
    report = report_of(pod)
    return report.migration if report is not None and report.migration and report.migration.migration == MIGRATION else None


def _order(pod: Pod) -> MigrationOrder:
    order = order_of(pod)
    assert order is not None
    return order


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()
