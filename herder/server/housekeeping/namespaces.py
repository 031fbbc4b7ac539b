"""The end of a namespace: its pods are deleted, then everything else in it, and when nothing is left, so is the namespace.

Pods first: what they may need to end (a policy, a claim, a secret) must not be gone before them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

from herder.api.world import timestamp
from herder.server.engine import Engine
from herder.server.housekeeping.namespace_conditions import Remaining, said
from herder.server.housekeeping.worker import Worker
from herder.server.metadata import FOREGROUND, ORPHAN
from herder.server.request import ENGINE
from herder.server.served import Served
from herder.server.status import ApiError
from herder.server.store import DELETED, Change, Record
from herder.server.strategies import ENDED_PHASES
from herder.server.verbs.writing import DeleteOptions, Preconditions, delete_one
from herder.server.writes import Intent

NAMESPACES, PODS = "namespaces", "pods"
FINALIZER = "kubernetes"
# The disk is waited for once for so many, and others are not kept from their turn for long.
AT_ONCE = 20
STATUS = Intent("herder", False, "status", user=ENGINE)
FINALIZE = Intent("herder", False, "finalize", user=ENGINE)
Document = dict[str, Any]


class NotCleared(Exception):
    """Something in a namespace could not be deleted; the text says what, and it is tried again."""


class Namespaces:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker[str]("namespaces", self._reconcile)
        # By the uid of a namespace: until when its slowest pod should have ended. Read once: there may be very many.
        self._deadlines: dict[str, float] = {}
        engine.store.listen("", self._on_change)
        # A kind that is no longer served holds nobody up.
        engine.registry.on_change(self._look_again)
        self._look_again()

    def _look_again(self) -> None:
        for record in self._engine.store.scan(NAMESPACES):
            if record.terminating:
                self.worker.add(record.name)

    def _on_change(self, change: Change) -> None:
        if change.table == NAMESPACES:
            if change.kind == DELETED:
                self._deadlines.pop(change.record.uid, None)
            elif change.record.terminating:
                self.worker.add(change.record.name)
        elif change.record.namespace and (change.kind == DELETED or _released(change)):
            namespace = self._engine.store.get(NAMESPACES, change.record.namespace)
            if namespace is not None and namespace.terminating:
                self.worker.add(change.record.namespace)

    async def _reconcile(self, name: str) -> None:
        record = self._engine.store.get(NAMESPACES, name)
        if record is None or not record.terminating:
            return
        remaining = Remaining()
        failed = await self._clear(record, remaining)
        now = timestamp(self._engine.world.now())
        await self._write(record, lambda namespace: _told(namespace, remaining, now), STATUS)
        if failed:
            raise NotCleared("; ".join(remaining.failures))
        if not remaining.resources:
            await self._write(record, _finished, FINALIZE)

    async def _write(self, record: Record, make: Callable[[Document], Document], intent: Intent) -> None:
        def unless_replaced(namespace: Document) -> Document:
            return make(namespace) if namespace["metadata"]["uid"] == record.uid else namespace

        try:
            await self._engine.writes.update(self._engine.served("", "v1", NAMESPACES), record.name, unless_replaced, intent)
        except ApiError as error:
            if error.code != 404:
                raise

    # --- clearing it away --------------------------------------------------------------------------------------------------------

    async def _clear(self, namespace: Record, remaining: Remaining) -> bool:
        """Whether something must be tried again; what is simply still there tells us when it goes."""
        pods, others = self._contents()
        failed = await self._empty(pods, namespace, remaining, self._grace_left(namespace))
        if not remaining.resources:
            for served in others:
                failed |= await self._empty(served, namespace, remaining, 0.0)
        return failed

    def _contents(self) -> tuple[Served, list[Served]]:
        """One version of each namespaced kind: that of pods, and the others."""
        kinds = {resource.qualified: resource for resource in self._engine.registry.resources() if resource.namespaced}
        found = [self._engine.registry.find(one.group, one.version, one.plural) for one in kinds.values()]
        by_table = {served.table: served for served in found if served is not None}
        return by_table.pop(PODS), list(by_table.values())

    async def _empty(self, served: Served, namespace: Record, remaining: Remaining, grace_left: float) -> bool:
        """`grace_left`: for so many seconds it is no wonder if something is left that no finalizer holds."""
        store, prefix, resource = self._engine.store, f"{namespace.name}/", served.resource
        failure = await self._delete_all(served, list(store.scan(served.table, prefix)))
        if failure:
            remaining.failures.append(failure)
        left = list(store.scan(served.table, prefix))
        if not left:
            return bool(failure)
        finalizers = Counter(name for record in left for name in record.finalizers)
        remaining.add(f"{resource.plural}.{resource.group}", len(left), finalizers)
        if grace_left > 0:
            self.worker.add_later(namespace.name, grace_left)
        elif not finalizers and not failure:
            gvr = f"{resource.group}/{resource.version}, Resource={resource.plural}"
            remaining.failures.append(f"unexpected items still remain in namespace: {namespace.name} for gvr: {gvr}")
        return bool(failure)

    async def _delete_all(self, served: Served, records: list[Record]) -> str:
        """All that can be deleted; of those that cannot, why the first could not."""
        failure = ""
        for start in range(0, len(records), AT_ONCE):
            some = records[start : start + AT_ONCE]
            for outcome in await asyncio.gather(*(self._delete(served, one) for one in some), return_exceptions=True):
                if isinstance(outcome, BaseException) and not isinstance(outcome, ApiError):
                    raise outcome
                if outcome is not None and outcome.code not in (404, 409):
                    failure = failure or str(outcome)
        return failure

    async def _delete(self, served: Served, record: Record) -> None:
        """What it owns is in the namespace as well, or outlives it: nothing waits for that, whoever began the deletion and how."""
        if record.terminating and FOREGROUND not in record.finalizers and ORPHAN not in record.finalizers:
            return
        options = DeleteOptions(propagationPolicy="Background", preconditions=Preconditions(uid=record.uid))
        await delete_one(self._engine, served, record.key, options)

    def _grace_left(self, namespace: Record) -> float:
        if namespace.uid not in self._deadlines:
            pods = [record.document() for record in self._engine.store.scan(PODS, f"{namespace.name}/")]
            alive = [pod["spec"] for pod in pods if pod.get("status", {}).get("phase") not in ENDED_PHASES]
            longest = max((spec.get("terminationGracePeriodSeconds") or 0 for spec in alive), default=0)
            deleted = datetime.fromisoformat(namespace.document()["metadata"]["deletionTimestamp"]).timestamp()
            self._deadlines[namespace.uid] = deleted + longest
        return self._deadlines[namespace.uid] - self._engine.world.now()


def _released(change: Change) -> bool:
    """Something that goes is held by other finalizers than before: people read in the namespace's conditions which."""
    before = change.previous
    return change.record.terminating and before is not None and before.finalizers != change.record.finalizers


def _told(namespace: Document, remaining: Remaining, now: str) -> Document:
    status = namespace.setdefault("status", {})
    status["conditions"] = said(status.get("conditions") or [], remaining, now)
    return namespace


def _finished(namespace: Document) -> Document:
    spec = namespace.setdefault("spec", {})
    spec["finalizers"] = [one for one in spec.get("finalizers", ()) if one != FINALIZER]
    return namespace
