"""A whole embedded engine: opened from its data directory, kept in order, closed again."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sqlite3
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec

from herder.api.crds import crd_of
from herder.api.kinds.kubevirt import NAME, NAMESPACE, empty_settings
from herder.api.labels import STORAGE_CLASS
from herder.api.registry import KINDS, SETTINGS, KindInfo
from herder.api.storage import storage_class
from herder.api.world import World
from herder.kit import tasks
from herder.server.access.tokens import Signer
from herder.server.defaults import CLASSES
from herder.server.engine import Engine
from herder.server.housekeeping.accounts import DefaultAccounts
from herder.server.housekeeping.binding import Binding
from herder.server.housekeeping.budgets import Budgets
from herder.server.housekeeping.compaction import Compaction
from herder.server.housekeeping.crds import CRDS, CustomKinds
from herder.server.housekeeping.disruptions import StaleDisruptions
from herder.server.housekeeping.expiry import Expiry
from herder.server.housekeeping.garbage import Garbage
from herder.server.housekeeping.namespaces import Namespaces
from herder.server.housekeeping.own_nodes import OwnNodes, taint_own_nodes
from herder.server.housekeeping.protection import Protection
from herder.server.housekeeping.recorder import Recorder
from herder.server.housekeeping.roles import Aggregation, ensure_roles
from herder.server.router import Router
from herder.server.status import ApiError
from herder.server.store import Change, Database, DataError, Store, ThreadWriter
from herder.server.store.records import key_of
from herder.server.upkeep import Upkeep
from herder.server.writes import HOUSEKEEPING

DATABASE = "herder.db"
FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", "herder-system", "kubevirt")
PRIORITY_CLASSES = (
    ("system-cluster-critical", 2_000_000_000, "For what the cluster cannot do without, but may be moved."),
    ("system-node-critical", 2_000_001_000, "For what a node cannot do without."),
)
READY_PATIENCE = 30.0
EXPANSION = "allowVolumeExpansion"
Document = dict[str, Any]


def open_store(folder: Path) -> Store:
    """Blocking: reads everything. Nothing else happens yet, and the cyclic collector would only walk what stays."""
    database = Database(folder / DATABASE)
    gc.disable()
    try:
        return Store(database, ThreadWriter(database, asyncio.get_running_loop()))
    except sqlite3.OperationalError:
        raise  # locked, or out of reach for now: not the data's fault
    except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
        why = f"{error}; restore it from a copy, or start with another --data directory"
        raise DataError(f"{folder / DATABASE} is damaged: {why}") from error
    finally:
        gc.enable()


class Running:
    def __init__(
        self,
        store: Store,
        world: World,
        signer: Signer | None = None,
        kinds: Sequence[KindInfo] = KINDS,
        own_nodes: OwnNodes | None = None,
    ) -> None:
        """Without a signer, tokens are good until the end of this process. `kinds` are those whose CRDs it brings along,
        `own_nodes` those of the program that it is a part of."""
        self.engine = Engine(store, world, signer)
        self._own_nodes = own_nodes or OwnNodes()
        self.engine.access.restriction.simulated.asked_for = frozenset(self._own_nodes.simulated)
        self.router = Router(self.engine)
        self._missing: list[str] = ["the first namespaces and kinds are being made"]
        self.router.information.ready_checks["start"] = self._not_started
        self.router.upkeep = Upkeep(self.engine, self._restored).answer
        self._kinds = CustomKinds(self.engine)
        self._garbage = Garbage(self.engine)
        self._namespaces = Namespaces(self.engine)
        self._accounts = DefaultAccounts(self.engine)
        self._aggregation = Aggregation(self.engine)
        self._recorder = Recorder(self.engine)
        self._budgets = Budgets(self.engine, self._recorder.tell)
        self._disruptions = StaleDisruptions(self.engine)
        self._binding = Binding(self.engine)
        self._protection = Protection(self.engine)
        self._compaction = Compaction(self.engine.store)
        self.expiry = Expiry(self.engine)
        self._brings = kinds
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for keeper in (
            *(self._kinds, self._garbage, self._namespaces),
            *(self._accounts, self._aggregation, self._budgets, self._disruptions, self._recorder),
            *(self._binding, self._protection),
        ):
            self._spawn(keeper.worker.run(), type(keeper).__name__)
        for worker in (self._compaction, self.expiry):
            self._spawn(worker.run(), type(worker).__name__)
        await self._first_objects()
        self._missing.clear()

    async def _not_started(self) -> str:
        return "; ".join(self._missing)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(tasks.keep_running(work, f"housekeeping: {name}"))

    async def _first_objects(self) -> None:
        ours = {info.crd_name: crd_of(info) for info in self._brings}
        # All at once: the disk is waited for once, not once for each.
        await asyncio.gather(
            *(self._ensure("", "namespaces", name, _namespace(name)) for name in FIRST_NAMESPACES),
            *(self._ensure("scheduling.k8s.io", "priorityclasses", one[0], _priority_class(*one)) for one in PRIORITY_CLASSES),
            self._ensure("storage.k8s.io", "storageclasses", STORAGE_CLASS, storage_class()),
            *(self._ensure("apiextensions.k8s.io", "customresourcedefinitions", name, crd) for name, crd in ours.items()),
            ensure_roles(self.engine),
            taint_own_nodes(self.engine, self._own_nodes),
        )
        await self._aggregation.gather()
        await self._until_served(list(ours))
        if SETTINGS in self._brings:
            await self._ensure_settings()

    async def _ensure_settings(self) -> None:
        """So that there is something to edit. Only now and not whenever it is missing: whoever deletes it, or replaces it by a new
        one, must not find us in the way; and without it the settings are the same as with an empty one."""
        served, key = self.engine.registry.by_table(SETTINGS.crd_name), key_of(NAMESPACE, NAME)
        namespace = self.engine.store.latest("namespaces", NAMESPACE)
        if served is None or served.terminating or namespace is None or namespace.terminating:
            return  # somebody is about to remove all of it
        if self.engine.store.latest(served.table, key) is None:
            # A disk that is full keeps nobody from reading, and must not keep the engine from starting.
            with contextlib.suppress(ApiError):
                await self.engine.writes.create(served, empty_settings(), HOUSEKEEPING)

    async def _until_served(self, names: list[str]) -> None:
        """Not ready before the kinds can be used: the first `kubectl apply` must work."""
        served = asyncio.Event()

        def look() -> None:
            if all(self.engine.registry.by_table(name) for name in names):
                served.set()

        self.engine.registry.on_change(look)
        look()
        async with asyncio.timeout(READY_PATIENCE):
            await served.wait()

    async def _restored(self, changes: list[Change]) -> None:
        """A backup may be of an older version of the program, which had less."""
        self._kinds.serve_again([change.record.key for change in changes if change.table == CRDS])
        await self._first_objects()

    async def _ensure(self, group: str, plural: str, name: str, wanted: Document) -> None:
        """Made where it is missing; our own CRDs follow the version of the program, and our class learns what it can."""
        served = self.engine.served(group, "v1", plural)
        current = self.engine.store.get(served.table, name)
        if current is None:
            await self.engine.writes.create(served, wanted, HOUSEKEEPING)
        elif served.table == CRDS:
            await self.engine.writes.update(served, name, lambda old: _with_spec(old, wanted), HOUSEKEEPING)
        elif served.table == CLASSES and EXPANSION not in current.document():
            # One of an earlier version says nothing of it. Who has said no is left alone.
            await self.engine.writes.update(served, name, lambda old: {**old, EXPANSION: wanted[EXPANSION]}, HOUSEKEEPING)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.to_thread(self.engine.store.close)


def _namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _priority_class(name: str, value: int, text: str) -> Document:
    about = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**about, "value": value, "description": text}


def _with_spec(old: Document, wanted: Document) -> Document:
    metadata = dict(old["metadata"])
    for part in ("labels", "annotations"):
        merged = {**metadata.get(part, {}), **wanted["metadata"].get(part, {})}
        if merged:
            metadata[part] = merged
    return {**old, "metadata": metadata, "spec": wanted["spec"]}
