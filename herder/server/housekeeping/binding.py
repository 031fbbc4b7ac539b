"""Claims and volumes find each other, as kube-controller-manager has it: by the volume's claimRef, or by the claim's volumeName.

Volumes that name nobody are not searched for one that fits: volumes are made by provisioners, which name the claim.
"""

from __future__ import annotations

from typing import Any

from herder.server.defaults import default_class
from herder.server.engine import Engine
from herder.server.housekeeping.worker import Worker
from herder.server.request import ENGINE
from herder.server.status import ApiError
from herder.server.store import DELETED, Change, Record
from herder.server.store.records import key_of
from herder.server.writes import Intent

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONERS = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
SELECTED_NODE = "volume.kubernetes.io/selected-node"
Document = dict[str, Any]
Place = tuple[str, str]
BINDER = Intent("persistentvolume-binder", user=ENGINE)
STATUS = Intent("persistentvolume-binder", False, "status", user=ENGINE)


class Binding:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.worker = Worker[Place]("volumes", self._reconcile)
        # The volumes that name a claim, by its key; and what each volume named last.
        self._named: dict[str, dict[str, None]] = {}
        self._names: dict[str, str] = {}
        for table in (VOLUMES, CLAIMS):
            for record in engine.store.scan(table):
                self._seen(table, record, gone=False)
            engine.store.listen(table, lambda change: self._seen(change.table, change.record, change.kind == DELETED))
        engine.store.listen(CLASSES, self._on_class)

    def _on_class(self, change: Change) -> None:
        """A default may have come for claims that have no class."""
        if change.kind != DELETED:
            for record in self._engine.store.scan(CLAIMS):
                if b'"volumeName"' not in record.raw:
                    self.worker.add((CLAIMS, record.key))

    def _seen(self, table: str, record: Record, gone: bool) -> None:
        self.worker.add((table, record.key))
        if table == CLAIMS:
            volume = record.document().get("spec", {}).get("volumeName")
            for key in (*self._named.get(record.key, ()), *((volume,) if volume else ())):
                self.worker.add((VOLUMES, key))
            return
        claim = "" if gone else _claim_key(record.document())
        for key in dict.fromkeys((self._names.get(record.key, ""), claim)):
            if key:
                self.worker.add((CLAIMS, key))
        self._know(record.key, claim)

    def _know(self, volume: str, claim: str) -> None:
        before = self._names.pop(volume, "")
        if before in self._named:
            self._named[before].pop(volume, None)
            if not self._named[before]:
                del self._named[before]
        if claim:
            self._names[volume] = claim
            self._named.setdefault(claim, {})[volume] = None

    async def _reconcile(self, place: Place) -> None:
        record = self._engine.store.latest(*place)
        if record is None:
            return
        if place[0] == CLAIMS:
            await self._claim(record.key, record.document())
        else:
            await self._volume(record.key, record.document())

    # --- claims ------------------------------------------------------------------------------------------------------------------

    async def _claim(self, key: str, claim: Document) -> None:
        volume = self._volume_for(key, claim)
        if volume is not None:
            await self._bind(key, claim, volume)
        elif _annotations(claim).get(BIND_COMPLETED):
            await self._show(CLAIMS, key, {"phase": "Lost"}, drop=("accessModes", "capacity"))
        else:
            await self._change(CLAIMS, key, self._asks_for_provisioning)
            await self._show(CLAIMS, key, {"phase": "Pending"})

    def _volume_for(self, key: str, claim: Document) -> Document | None:
        named = claim["spec"].get("volumeName")
        if named:
            record = self._engine.store.latest(VOLUMES, named)
            found = record.document() if record is not None else None
            return found if found is not None and (_free(found) or _names(found, key, claim)) else None
        for name in sorted(self._named.get(key, ())):
            record = self._engine.store.latest(VOLUMES, name)
            if record is not None and not record.terminating and _names(found := record.document(), key, claim):
                return found
        return None

    def _asks_for_provisioning(self, claim: Document) -> Document:
        spec = claim["spec"]
        if spec.get("storageClassName") is None and (default := default_class(self._engine.store)) is not None:
            spec["storageClassName"] = default.name
        record = self._engine.store.latest(CLASSES, spec.get("storageClassName") or "")
        if record is None or spec.get("volumeName"):
            return claim
        chosen = record.document()
        if chosen.get("volumeBindingMode") == "WaitForFirstConsumer" and SELECTED_NODE not in _annotations(claim):
            return claim
        annotations = claim["metadata"].setdefault("annotations", {})
        annotations |= dict.fromkeys(PROVISIONERS, chosen["provisioner"])
        return claim

    async def _bind(self, key: str, claim: Document, volume: Document) -> None:
        """The volume first: should we end in between, it is clear who has it."""
        name, metadata = volume["metadata"]["name"], claim["metadata"]
        await self._change(VOLUMES, name, lambda old: _claimed(old, metadata))
        await self._show(VOLUMES, name, {"phase": "Bound"})
        await self._change(CLAIMS, key, lambda old: _bound(old, metadata["uid"], name))
        await self._write(CLAIMS, key, lambda old: _told(old, volume["spec"]), STATUS)

    # --- volumes -----------------------------------------------------------------------------------------------------------------

    async def _volume(self, key: str, volume: Document) -> None:
        reference = volume["spec"].get("claimRef") or {}
        if not reference.get("uid"):
            await self._show(VOLUMES, key, {"phase": "Available"})
            return
        claim = self._engine.store.latest(CLAIMS, _claim_key(volume))
        if claim is None or claim.uid != reference["uid"]:
            if volume.get("status", {}).get("phase") not in ("Released", "Failed"):
                await self._show(VOLUMES, key, {"phase": "Released"})
        elif claim.document()["spec"].get("volumeName") == key:
            await self._show(VOLUMES, key, {"phase": "Bound"})

    # --- writing -----------------------------------------------------------------------------------------------------------------

    async def _change(self, table: str, key: str, make: Any) -> None:
        await self._write(table, key, make, BINDER)

    async def _show(self, table: str, key: str, status: Document, drop: tuple[str, ...] = ()) -> None:
        def told(document: Document) -> Document:
            kept = {name: value for name, value in (document.get("status") or {}).items() if name not in drop}
            document["status"] = {**kept, **status}
            return document

        await self._write(table, key, told, STATUS)

    async def _write(self, table: str, key: str, make: Any, intent: Intent) -> None:
        try:
            await self._engine.writes.update(self._engine.served("", "v1", table), key, make, intent)
        except ApiError as error:
            if error.code != 404:
                raise


def _claim_key(volume: Document) -> str:
    reference = volume["spec"].get("claimRef") or {}
    return key_of(reference.get("namespace", ""), reference["name"]) if reference.get("name") else ""


def _free(volume: Document) -> bool:
    return not volume["spec"].get("claimRef") and "deletionTimestamp" not in volume["metadata"]


def _names(volume: Document, key: str, claim: Document) -> bool:
    """Whether the volume is for this claim, and not for another one of its name."""
    reference = volume["spec"].get("claimRef") or {}
    return _claim_key(volume) == key and reference.get("uid", "") in ("", claim["metadata"]["uid"])


def _annotations(document: Document) -> Document:
    return document["metadata"].get("annotations") or {}


def _claimed(volume: Document, claim: Document) -> Document:
    before = volume["spec"].get("claimRef") or {}
    if before.get("uid") == claim["uid"]:
        return volume
    if not before:
        volume["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
    volume["spec"]["claimRef"] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim["namespace"],
        "name": claim["name"],
        "uid": claim["uid"],
        "resourceVersion": claim["resourceVersion"],
    }
    return volume


def _told(claim: Document, volume: Document) -> Document:
    """What it has is told when it is bound. A volume that grows later is its resizer's business, and so is what the claim says."""
    known = claim.get("status") or {}
    given = {} if known.get("phase") == "Bound" else {"capacity": volume.get("capacity", {})}
    claim["status"] = {**known, "phase": "Bound", "accessModes": volume.get("accessModes", []), **given}
    return claim


def _bound(claim: Document, uid: str, volume: str) -> Document:
    if claim["metadata"]["uid"] != uid:
        return claim
    annotations = claim["metadata"].setdefault("annotations", {})
    if claim["spec"].get("volumeName") != volume:
        claim["spec"]["volumeName"] = volume
        annotations[BOUND_BY_CONTROLLER] = "yes"
    annotations[BIND_COMPLETED] = "yes"
    return claim
