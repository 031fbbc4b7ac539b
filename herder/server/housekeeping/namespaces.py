"""The end of a namespace: everything in it is deleted, and when nothing is left, so is the namespace."""

from __future__ import annotations

from typing import Any

from herder.api.world import timestamp
from herder.server.engine import Engine
from herder.server.housekeeping.worker import Worker
from herder.server.metadata import finalizers_of
from herder.server.served import Served
from herder.server.status import ApiError
from herder.server.store import DELETED, Change
from herder.server.verbs.writing import DeleteOptions, delete_one
from herder.server.writes import Intent

NAMESPACES = "namespaces"
FINALIZER = "kubernetes"
Document = dict[str, Any]


class Namespaces:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker[str]("namespaces", self._reconcile)
        engine.store.listen("", self._on_change)
        for record in engine.store.scan(NAMESPACES):
            if record.terminating:
                self.worker.add(record.name)

    def _on_change(self, change: Change) -> None:
        if change.table == NAMESPACES:
            if change.kind != DELETED and change.record.terminating:
                self.worker.add(change.record.name)
        elif change.kind == DELETED and change.record.namespace:
            namespace = self._engine.store.get(NAMESPACES, change.record.namespace)
            if namespace is not None and namespace.terminating:
                self.worker.add(change.record.namespace)

    async def _reconcile(self, name: str) -> None:
        record = self._engine.store.get(NAMESPACES, name)
        if record is None or not record.terminating:
            return
        remaining: dict[str, int] = {}
        for served in self._contents():
            left = await self._empty(served, name)
            if left:
                remaining[served.table] = left
        served = self._engine.served("", "v1", NAMESPACES)
        if remaining:
            holders = self._holders(name)
            say = Intent("herder", False, "status")
            await self._engine.writes.update(served, name, lambda old: self._say(old, remaining, holders), say)
        else:
            await self._engine.writes.update(served, name, _finish, Intent("herder", False, "finalize"))

    def _contents(self) -> list[Served]:
        """One version of each namespaced kind."""
        kinds = {resource.qualified: resource for resource in self._engine.registry.resources() if resource.namespaced}
        found = [self._engine.registry.find(one.group, one.version, one.plural) for one in kinds.values()]
        return [served for served in found if served is not None]

    async def _empty(self, served: Served, namespace: str) -> int:
        store = self._engine.store
        for record in list(store.scan(served.table, f"{namespace}/")):
            if record.terminating:
                continue
            try:
                await delete_one(self._engine, served, record.key, DeleteOptions())
            except ApiError as error:
                if error.code != 404:
                    raise
        return sum(1 for _ in store.scan(served.table, f"{namespace}/"))

    def _say(self, namespace: Document, remaining: dict[str, int], holders: dict[str, int]) -> Document:
        """Why it is still there, in words: someone may be waiting for it."""
        contents = ", ".join(f"{kind} has {count} resource instances" for kind, count in sorted(remaining.items()))
        told = [_condition("NamespaceContentRemaining", "SomeResourcesRemain", f"Some resources are remaining: {contents}")]
        if holders:
            listed = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(holders.items()))
            message = f"Some content in the namespace has finalizers remaining: {listed}"
            told.append(_condition("NamespaceFinalizersRemaining", "SomeFinalizersRemain", message))
        status = namespace.setdefault("status", {})
        before = {one["type"]: one for one in status.get("conditions", ())}
        now = timestamp(self._engine.world.now())
        for one in told:
            since = before[one["type"]]["lastTransitionTime"] if one["type"] in before else now
            before[one["type"]] = {**one, "lastTransitionTime": since}
        status["conditions"] = list(before.values())
        return namespace

    def _holders(self, name: str) -> dict[str, int]:
        """Which finalizers still hold something, and how much."""
        found: dict[str, int] = {}
        for served in self._contents():
            for record in self._engine.store.scan(served.table, f"{name}/"):
                for finalizer in finalizers_of(record.document()):
                    found[finalizer] = found.get(finalizer, 0) + 1
        return found


def _condition(kind: str, reason: str, message: str) -> Document:
    return {"type": kind, "status": "True", "reason": reason, "message": message}


def _finish(namespace: Document) -> Document:
    spec = namespace.setdefault("spec", {})
    spec["finalizers"] = [one for one in spec.get("finalizers", ()) if one != FINALIZER]
    return namespace
