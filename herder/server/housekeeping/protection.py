"""Claims that pods use, and volumes that claims use, are not taken away under them."""

from __future__ import annotations

from typing import Any

from herder.server.engine import Engine
from herder.server.housekeeping.worker import Worker
from herder.server.metadata import finalizers_of, set_finalizers
from herder.server.request import ENGINE
from herder.server.status import ApiError
from herder.server.store import DELETED, Change, Record
from herder.server.store.records import key_of
from herder.server.strategies import PROTECTION
from herder.server.writes import Intent

CLAIMS, VOLUMES, PODS = "persistentvolumeclaims", "persistentvolumes", "pods"
Document = dict[str, Any]
Place = tuple[str, str]
PROTECTOR = Intent("protection-controller", user=ENGINE)


class Protection:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker[Place]("protection", self._reconcile)
        # Pods by the claims that they mount; what a pod mounts never changes.
        self._users: dict[str, dict[str, None]] = {}
        for record in engine.store.scan(PODS):
            self._know(record)
        for table in (CLAIMS, VOLUMES):
            for record in engine.store.scan(table):
                self._look(table, record)
            engine.store.listen(table, self._on_change)
        engine.store.listen(PODS, self._on_pod)

    def _on_change(self, change: Change) -> None:
        if change.kind != DELETED:
            self._look(change.table, change.record)

    def _look(self, table: str, record: Record) -> None:
        if record.terminating:
            self.worker.add((table, record.key))

    def _on_pod(self, change: Change) -> None:
        if change.previous is None:
            self._know(change.record)
        elif change.kind == DELETED:
            for claim in _mounted(change.record):
                users = self._users.get(claim, {})
                users.pop(change.record.key, None)
                if not users:
                    self._users.pop(claim, None)
                self.worker.add((CLAIMS, claim))

    def _know(self, pod: Record) -> None:
        for claim in _mounted(pod):
            self._users.setdefault(claim, {})[pod.key] = None

    async def _reconcile(self, place: Place) -> None:
        table, key = place
        record = self._engine.store.latest(table, key)
        if record is None or not record.terminating or self._in_use(table, record):
            return

        def without(document: Document) -> Document:
            set_finalizers(document, [one for one in finalizers_of(document) if one != PROTECTION[table]])
            return document

        try:
            await self._engine.writes.update(self._engine.served("", "v1", table), key, without, PROTECTOR)
        except ApiError as error:
            if error.code != 404:
                raise

    def _in_use(self, table: str, record: Record) -> bool:
        if table == VOLUMES:
            return record.document().get("status", {}).get("phase") == "Bound"
        return any(self._is_bound(pod) for pod in self._users.get(record.key, ()))

    def _is_bound(self, key: str) -> bool:
        """One that has no node yet does not count: no node will start it with a claim that goes away."""
        pod = self._engine.store.latest(PODS, key)
        return pod is not None and bool(pod.document()["spec"].get("nodeName"))


def _mounted(pod: Record) -> list[str]:
    if b'"persistentVolumeClaim"' not in pod.raw:
        return []
    volumes = pod.document().get("spec", {}).get("volumes") or ()
    names = [(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes]
    return [key_of(pod.namespace, name) for name in dict.fromkeys(names) if name]
