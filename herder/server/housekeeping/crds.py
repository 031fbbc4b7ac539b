"""CustomResourceDefinitions: their names are checked, they are established, and in the end their objects go with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from herder.api.world import timestamp
from herder.server.custom import served_versions
from herder.server.engine import Engine
from herder.server.housekeeping.worker import Worker
from herder.server.metadata import finalizers_of, is_terminating, set_finalizers
from herder.server.status import ApiError
from herder.server.store import DELETED, Change
from herder.server.strategies import CRD_CLEANUP
from herder.server.verbs.writing import DeleteOptions, delete_one
from herder.server.writes import HOUSEKEEPING, Intent

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
STATUS = Intent("herder", False, "status")
Document = dict[str, Any]


class NameConflict(NamedTuple):
    reason: str
    message: str


class CustomKinds:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker[str]("crds", self._reconcile)
        # Kinds whose CRD is on its way out, and that wait for their last object.
        self._emptying: dict[str, str] = {}
        for record in engine.store.scan(CRDS):
            document = record.document()
            if _is_established(document):
                self._serve(document)
            self.worker.add(record.key)
        engine.store.listen("", self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.table == CRDS:
            if change.kind == DELETED:
                self._forget(change.record.document())
            self.worker.add(change.record.key)
        elif change.kind == DELETED and change.table in self._emptying:
            self.worker.add(self._emptying[change.table])

    def serve_again(self, names: Iterable[str]) -> None:
        """After a restore: a definition may be another one, though its name and its generation are the same."""
        for name in names:
            record = self._engine.store.get(CRDS, name)
            document = record.document() if record is not None else {}
            if document and _is_established(document):
                self._serve(document)

    def _serve(self, crd: Document) -> None:
        spec = crd["spec"]
        versions = served_versions(crd)
        for served in versions:
            served.terminating = is_terminating(crd)
        before = self._engine.registry.by_table(crd["metadata"]["name"])
        self._engine.registry.replace(spec["group"], spec["names"]["plural"], versions)
        if before is not None:
            # Whoever watches should see the kind as it is now: they come back at once, and miss nothing.
            self._engine.hub.close(crd["metadata"]["name"])

    def _forget(self, crd: Document) -> None:
        spec = crd["spec"]
        self._emptying.pop(crd["metadata"]["name"], None)
        self._engine.registry.replace(spec["group"], spec["names"]["plural"], [])
        self._engine.hub.close(crd["metadata"]["name"])

    async def _reconcile(self, name: str) -> None:
        record = self._engine.store.get(CRDS, name)
        if record is None:
            return
        crd = record.document()
        if record.terminating:
            await self._empty(crd)
        else:
            await self._establish(name, crd)

    async def _establish(self, name: str, crd: Document) -> None:
        conflict = self._names_conflict(crd)
        served = self._engine.served("apiextensions.k8s.io", "v1", "customresourcedefinitions")

        def say(old: Document) -> Document:
            return _with_status(old, conflict, timestamp(self._engine.world.now()))

        await self._engine.writes.update(served, name, say, STATUS)
        current = self._engine.store.get(CRDS, name)
        if current is None:
            return
        latest = current.document()
        if _is_established(latest) and self._needs_serving(latest):
            self._serve(latest)

    def _needs_serving(self, crd: Document) -> bool:
        served = self._engine.registry.by_table(crd["metadata"]["name"])
        return served is None or served.generation != crd["metadata"].get("generation", 0)

    def _names_conflict(self, crd: Document) -> NameConflict | None:
        """Another kind of the group already has one of the names: it keeps it."""
        names = crd["spec"]["names"]
        group = [
            one for one in self._engine.registry.resources() if one.group == crd["spec"]["group"] and one.plural != names["plural"]
        ]
        taken = {name for one in group for name in (one.plural, one.singular, *one.short_names)}
        kinds = {name for one in group for name in (one.kind, one.list_kind)}
        found: NameConflict | None = None
        for reason, name, others in (
            ("PluralConflict", names["plural"], taken),
            ("SingularConflict", names.get("singular") or names["kind"].lower(), taken),
            *(("ShortNamesConflict", short, taken) for short in names.get("shortNames") or ()),
            ("KindConflict", names["kind"], kinds),
            ("ListKindConflict", names.get("listKind") or f"{names['kind']}List", kinds),
        ):
            if name in others:
                found = NameConflict(reason, f'"{name}" is already in use')
        return found

    # --- the end -----------------------------------------------------------------------------------------------------------------

    async def _empty(self, crd: Document) -> None:
        name = crd["metadata"]["name"]
        if CRD_CLEANUP not in finalizers_of(crd):
            return
        self._emptying[name] = name
        served = self._engine.registry.by_table(name)
        if served is not None:
            served.terminating = True
            for record in list(self._engine.store.scan(name)):
                if not record.terminating:
                    await _delete(self._engine, name, record.key)
            if next(self._engine.store.scan(name), None) is not None:
                return
        definitions = self._engine.served("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        await self._engine.writes.update(definitions, name, _without_cleanup, HOUSEKEEPING)


async def _delete(engine: Engine, table: str, key: str) -> None:
    served = engine.registry.by_table(table)
    assert served is not None
    try:
        await delete_one(engine, served, key, DeleteOptions())
    except ApiError as error:
        if error.code != 404:
            raise


def _without_cleanup(crd: Document) -> Document:
    set_finalizers(crd, [one for one in finalizers_of(crd) if one != CRD_CLEANUP])
    return crd


def _is_established(crd: Document) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _with_status(crd: Document, conflict: NameConflict | None, now: str) -> Document:
    status = crd.setdefault("status", {})
    if conflict:
        accepted = _condition("NamesAccepted", "False", conflict.reason, conflict.message)
        established = _condition("Established", "False", "NotAccepted", "not all names are accepted")
        if _is_established(crd):
            established = _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        accepted = _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
        established = _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
        status["acceptedNames"] = crd["spec"]["names"]
    status.setdefault("acceptedNames", {"plural": "", "kind": ""})
    status["conditions"] = [_merged(status.get("conditions") or (), one, now) for one in (accepted, established)]
    storage = next(version["name"] for version in crd["spec"]["versions"] if version.get("storage"))
    stored = status.get("storedVersions") or []
    status["storedVersions"] = stored if storage in stored else [*stored, storage]
    return crd


def _condition(kind: str, value: str, reason: str, message: str) -> Document:
    return {"type": kind, "status": value, "reason": reason, "message": message}


def _merged(before: Any, condition: Document, now: str) -> Document:
    """The time stays while the status does."""
    old = next((one for one in before if one["type"] == condition["type"]), None)
    same = old is not None and old["status"] == condition["status"]
    return {**condition, "lastTransitionTime": old["lastTransitionTime"] if same and old else now}
