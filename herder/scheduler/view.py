"""Keeps the snapshot as the caches are, and says what happened that may matter to a pod that waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from herder.api.core import Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from herder.api.kinds import ReservationView
from herder.api.labels import RESERVATION_ALLOCATED
from herder.kube.cache import Caches, Change, view_of
from herder.kube.resources import CLAIMS, NAMESPACES, NODES, PODS, RESERVATIONS, STORAGE_CLASSES, VOLUMES, Key
from herder.rules.placement import Event, Needs, Offer, Snapshot, What, needs_of, node_event
from herder.rules.reservations import Allocation, Ledger, held_key

FINISHED = ("Succeeded", "Failed")


class View:
    def __init__(self, caches: Caches, tell: Callable[[Event], None], opened: Callable[[str], None]) -> None:
        """`opened`: told of each reservation that pods may take from now on."""
        self.snapshot = Snapshot()
        self.ledger = Ledger()
        # Not bound yet, but as good as: they hold their room.
        self.assumed: dict[Key, Needs] = {}
        self._tell = tell
        self._opened = opened
        caches.of(NAMESPACES).subscribe(self._namespace_changed)
        caches.of(NODES).subscribe(self._node_changed)
        caches.of(PODS).subscribe(self._pod_changed)
        caches.of(CLAIMS).subscribe(self._claim_changed)
        caches.of(VOLUMES).subscribe(self._volume_changed)
        caches.of(STORAGE_CLASSES).subscribe(self._class_changed)
        caches.of(RESERVATIONS).subscribe(self._reservation_changed)

    # What the scheduler itself adds to it.

    def assume(self, pod: Pod, needs: Needs, node: str, reservation: ReservationView | None = None) -> None:
        self.assumed[Key(pod.namespace, pod.name)] = needs
        self.snapshot.put_pod(needs, node)
        if reservation is not None:
            self._sync(self.ledger.put_pod(pod, needs, node, Allocation(reservation.name, reservation.uid)))
        self._tell(Event(What.POD_PLACED, node, pod=needs))

    def undo(self, key: Key) -> None:
        """It is not there after all, unless the cache has shown by now that it is."""
        if self.assumed.pop(key, None) is not None:
            self._remove_pod(key)

    def assume_reservation(self, name: str, node: str) -> None:
        self.ledger.assume(name, node)
        self._sync((name,))

    def undo_reservation(self, name: str) -> None:
        if self.ledger.undo(name):
            self._sync((name,))

    # Changes of the caches.

    def _pod_changed(self, change: Change[Pod]) -> None:
        pod = view_of(change.new)
        if pod is None or pod.status.phase in FINISHED:
            self.assumed.pop(change.key, None)
            self._remove_pod(change.key)
        elif pod.spec.node_name:
            self.assumed.pop(change.key, None)
            if not _same(view_of(change.old), pod) or self.snapshot.placed(change.key) is None:
                needs = needs_of(pod)
                self._put(change.key, needs, pod.spec.node_name)
                self._sync(self.ledger.put_pod(pod, needs, pod.spec.node_name))
        elif (assumed := self.assumed.get(change.key)) is not None and assumed.uid != pod.uid:
            # Another pod of the same name.
            self.undo(change.key)

    def _remove_pod(self, key: Key) -> None:
        """The room that it had of a reservation is held again first: nobody may think that it was free."""
        self._sync(self.ledger.remove_pod(key))
        self._remove(key)

    def _reservation_changed(self, change: Change[ReservationView]) -> None:
        name, reservation = change.key.name, view_of(change.new)
        was_open = bool(self.ledger.keys_of(name))
        if reservation is None:
            self.ledger.remove(name)
        else:
            self.ledger.put(reservation)
        self._sync((name,))
        if not was_open and self.ledger.keys_of(name):
            self._opened(name)

    def _sync(self, reservations: Iterable[str]) -> None:
        """What they hold now, in place of what they held before."""
        for name in reservations:
            key, held = Key(*held_key(name)), self.ledger.held(name)
            before = self.snapshot.placed(key)
            if held is None:
                self._remove(key)
            elif before is None or (before.node, before.needs.requests) != (held.node, held.needs.requests):
                self._put(key, held.needs, held.node)

    def _put(self, key: Key, needs: Needs, node: str) -> None:
        before = self.snapshot.placed(key)
        self.snapshot.put_pod(needs, node)
        if before is not None and before.node == node and before.needs.group == needs.group:
            if before.needs.requests != needs.requests:
                self._tell(Event(What.POD_WENT, node, pod=before.needs))
            return
        if before is not None:
            self._tell(Event(What.POD_WENT, before.node, pod=before.needs))
        self._tell(Event(What.POD_PLACED, node, pod=needs))

    def _remove(self, key: Key) -> None:
        placed = self.snapshot.remove_pod(key)
        if placed is not None:
            self._tell(Event(What.POD_WENT, placed.node, pod=placed.needs))

    def _node_changed(self, change: Change[Node]) -> None:
        node = view_of(change.new)
        row = self.snapshot.nodes.rows.get(change.key.name)
        before = self.snapshot.nodes.offers[row] if row is not None else None
        after = Offer.of(node) if node is not None else None
        event = node_event(before, after)
        if event is None:
            return
        if after is not None:
            self.snapshot.put_node(after)
        else:
            self.snapshot.remove_node(change.key.name)
        self._tell(event)

    def _namespace_changed(self, change: Change[Namespace]) -> None:
        # Labels are read without the view.
        labels: Mapping[str, str] | None = change.new.labels if change.new is not None else None
        if self.snapshot.put_namespace(change.key.name, labels):
            self._tell(Event(What.NAMESPACE_CHANGED, name=change.key.name))

    def _claim_changed(self, change: Change[PersistentVolumeClaim]) -> None:
        _put_or_remove(self.snapshot.storage.claims, (change.key.namespace, change.key.name), view_of(change.new))
        self._tell(Event(What.CLAIM_CHANGED, namespace=change.key.namespace, name=change.key.name))

    def _volume_changed(self, change: Change[PersistentVolume]) -> None:
        _put_or_remove(self.snapshot.storage.volumes, change.key.name, view_of(change.new))
        self._tell(Event(What.VOLUME_CHANGED, name=change.key.name))

    def _class_changed(self, change: Change[StorageClass]) -> None:
        _put_or_remove(self.snapshot.storage.classes, change.key.name, view_of(change.new))
        self._tell(Event(What.CLASS_CHANGED, name=change.key.name))


def _same(old: Pod | None, new: Pod) -> bool:
    """Nodes write the status of their pods all the time; nothing of that matters here."""
    return (
        old is not None
        and old.labels == new.labels
        and old.annotations.get(RESERVATION_ALLOCATED) == new.annotations.get(RESERVATION_ALLOCATED)
        and old.being_deleted == new.being_deleted
        and old.status.phase not in FINISHED
        and old.spec == new.spec
    )


def _put_or_remove(there: dict[Any, Any], key: object, value: object | None) -> None:
    if value is None:
        there.pop(key, None)
    else:
        there[key] = value
