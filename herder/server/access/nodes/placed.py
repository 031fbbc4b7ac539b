"""Which pods are on which node, and what they name: followed in the store, so that a decision looks at few pods."""

from __future__ import annotations

import msgspec

from herder.server.access.nodes.mounts import CLAIMS, Named, named_by
from herder.server.store import DELETED, Change, Record, Store
from herder.server.store.records import key_of

PODS = "pods"
VOLUMES = "persistentvolumes"


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

    def names_volume(self, node: str, name: str) -> bool:
        """Whether it is behind a claim that a pod of this node names."""
        record = self._store.get(VOLUMES, name)
        claim = ((record.document().get("spec") or {}).get("claimRef") or {}) if record else {}
        return bool(claim) and self.names(node, CLAIMS, claim.get("namespace") or "", claim.get("name") or "")

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
