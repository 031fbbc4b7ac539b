"""A ServiceAccount named `default` in every namespace, as long as the namespace is open."""

from __future__ import annotations

from herder.server.engine import Engine
from herder.server.housekeeping.worker import Worker
from herder.server.status import ApiError
from herder.server.store import DELETED, Change
from herder.server.store.records import key_of
from herder.server.writes import HOUSEKEEPING

NAMESPACES, ACCOUNTS = "namespaces", "serviceaccounts"
DEFAULT = "default"


class DefaultAccounts:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker[str]("default accounts", self._reconcile)
        engine.store.listen(NAMESPACES, self._on_namespace)
        engine.store.listen(ACCOUNTS, self._on_account)
        for record in engine.store.scan(NAMESPACES):
            self.worker.add(record.name)

    def _on_namespace(self, change: Change) -> None:
        if change.kind != DELETED:
            self.worker.add(change.record.name)

    def _on_account(self, change: Change) -> None:
        if change.kind == DELETED and change.record.name == DEFAULT:
            self.worker.add(change.record.namespace)

    async def _reconcile(self, namespace: str) -> None:
        store = self._engine.store
        # What is being written counts: a namespace that is being deleted at this moment must not get another one.
        record = store.latest(NAMESPACES, namespace)
        if record is None or record.terminating or store.latest(ACCOUNTS, key_of(namespace, DEFAULT)) is not None:
            return
        metadata = {"name": DEFAULT, "namespace": namespace}
        wanted = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        try:
            await self._engine.writes.create(self._engine.served("", "v1", ACCOUNTS), wanted, HOUSEKEEPING)
        except ApiError as error:
            if error.code != 409:
                raise
