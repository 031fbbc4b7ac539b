"""Which pods are on which node, and what they name: followed in the store, so that a decision looks at few pods."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from herder.api.account import SYSTEM_NAMESPACE
from herder.server.access.nodes.mounts import CLAIMS, DATA_VOLUMES, VOLUMES, Named, named_by
from herder.server.store import DELETED, Change, Record, Store
from herder.server.store.records import key_of

PODS = "pods"


class _Spec(msgspec.Struct, gc=False):
    nodeName: str = ""


class _Pod(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(_Pod).decode


class _Place(msgspec.Struct, frozen=True, gc=False):
    uid: str
    node: str


class PlacedPods:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._places: dict[str, _Place] = {}
        self._on: dict[str, set[str]] = {}
        # Read when a node first asks: most pods' nodes never do.
        self._named: dict[str, frozenset[Named]] = {}
        for record in store.scan(PODS):
            self._place(record)
        store.listen(PODS, self._on_change)

    # --- asking ------------------------------------------------------------------------------------------------------------------

    def node_of(self, namespace: str, name: str) -> str:
        place = self._places.get(key_of(namespace, name))
        return place.node if place else ""

    def names(self, node: str, table: str, namespace: str, name: str) -> bool:
        """Whether a pod of this node names the object."""
        keys = (key for key in self._on.get(node, ()) if key.startswith(f"{namespace}/"))
        return any((table, name) in self._named_by(key) for key in keys)

    def names_claim(self, node: str, namespace: str, name: str) -> bool:
        """Whether a pod of this node names it, copies it, or clears the volume that was made for it."""
        wanted = (namespace, name)
        return self.names(node, CLAIMS, namespace, name) or wanted in self._copied(node) or wanted in self._cleared(node)

    def names_volume(self, node: str, name: str) -> bool:
        """Whether it is behind a claim that a pod of this node names, or one of its pods clears it."""
        if self.names(node, VOLUMES, SYSTEM_NAMESPACE, name):
            return True
        claim = self._claim_of(name)
        return claim is not None and self.names_claim(node, *claim)

    def _copied(self, node: str) -> Iterator[tuple[str, str]]:
        """Claims that DataVolumes copy whose importers are on this node: of any namespace."""
        for key in self._on.get(node, ()):
            namespace = key.partition("/")[0]
            for table, name in self._named_by(key):
                record = self._store.get(DATA_VOLUMES, key_of(namespace, name)) if table == DATA_VOLUMES else None
                if record is not None:
                    source = ((record.document().get("spec") or {}).get("source") or {}).get("pvc") or {}
                    yield source.get("namespace") or namespace, source.get("name") or ""

    def _cleared(self, node: str) -> Iterator[tuple[str, str]]:
        """Claims of the volumes that pods on this node clear."""
        for key in self._on.get(node, ()):
            for table, name in self._named_by(key) if key.startswith(f"{SYSTEM_NAMESPACE}/") else ():
                claim = self._claim_of(name) if table == VOLUMES else None
                if claim is not None:
                    yield claim

    def _claim_of(self, volume: str) -> tuple[str, str] | None:
        record = self._store.get(VOLUMES, volume)
        claim = ((record.document().get("spec") or {}).get("claimRef") or {}) if record else {}
        return (claim.get("namespace") or "", claim.get("name") or "") if claim else None

    def _named_by(self, key: str) -> frozenset[Named]:
        found = self._named.get(key)
        if found is None:
            record = self._store.get(PODS, key)
            if record is None:
                return frozenset()
            found = self._named[key] = named_by(record.document())
        return found

    # --- following the store -----------------------------------------------------------------------------------------------------

    def _on_change(self, change: Change) -> None:
        record = change.record
        known = self._places.get(record.key)
        if change.kind == DELETED:
            self._forget(record.key)
        elif known is None or known.uid != record.uid:
            self._forget(record.key)
            self._place(record)
        else:
            # Where it is stays; containers for debugging may be added, which name more.
            self._named.pop(record.key, None)

    def _place(self, record: Record) -> None:
        node = _decode(record.raw).spec.nodeName
        if node:
            self._places[record.key] = _Place(record.uid, node)
            self._on.setdefault(node, set()).add(record.key)

    def _forget(self, key: str) -> None:
        self._named.pop(key, None)
        place = self._places.pop(key, None)
        if place is None:
            return
        keys = self._on[place.node]
        keys.discard(key)
        if not keys:
            del self._on[place.node]
