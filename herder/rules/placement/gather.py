"""A snapshot of everything at once, for those who ask one question: `explain`, and tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from herder.api.core import Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from herder.api.kinds import ReservationView
from herder.rules.placement.needs import needs_of
from herder.rules.placement.nodes import Offer
from herder.rules.placement.snapshot import Snapshot
from herder.rules.reservations.ledger import Ledger

FINISHED = ("Succeeded", "Failed")


class Everything(msgspec.Struct, frozen=True):
    nodes: Iterable[Node]
    pods: Iterable[Pod]
    namespaces: Iterable[Namespace] = ()
    claims: Iterable[PersistentVolumeClaim] = ()
    volumes: Iterable[PersistentVolume] = ()
    classes: Iterable[StorageClass] = ()
    reservations: Iterable[ReservationView] = ()


def snapshot_of(everything: Everything, ledger: Ledger | None = None) -> Snapshot:
    snapshot = Snapshot()
    for _ in fill(snapshot, everything, ledger=ledger):
        pass
    return snapshot


def fill(snapshot: Snapshot, everything: Everything, step: int = 200, ledger: Ledger | None = None) -> Iterator[None]:
    """In steps of so many nodes or pods: who has others waiting lets them go on in between. `ledger`: an empty one, for who wants
    to know more of reservations than what they hold."""
    ledger = ledger if ledger is not None else Ledger()
    for namespace in everything.namespaces:
        snapshot.put_namespace(namespace.name, namespace.labels)
    for count, node in enumerate(everything.nodes, 1):
        snapshot.put_node(Offer.of(node))
        if not count % step:
            yield
    for count, pod in enumerate(everything.pods, 1):
        if not count % step:
            yield
        if pod.spec.node_name and pod.status.phase not in FINISHED:
            needs = needs_of(pod)
            snapshot.put_pod(needs, pod.spec.node_name)
            ledger.put_pod(pod, needs, pod.spec.node_name)
    for reservation in everything.reservations:
        ledger.put(reservation)
        held = ledger.held(reservation.name)
        if held is not None:
            snapshot.put_pod(held.needs, held.node)
    snapshot.storage.claims |= {(claim.namespace, claim.name): claim for claim in everything.claims}
    snapshot.storage.volumes |= {volume.name: volume for volume in everything.volumes}
    snapshot.storage.classes |= {one.name: one for one in everything.classes}
