"""A snapshot of everything at once, for those who ask one question: `explain`, and tests."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from herder.api.core import Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from herder.rules.placement.needs import needs_of
from herder.rules.placement.nodes import Offer
from herder.rules.placement.snapshot import Snapshot

FINISHED = ("Succeeded", "Failed")


class Everything(msgspec.Struct, frozen=True):
    nodes: Iterable[Node]
    pods: Iterable[Pod]
    namespaces: Iterable[Namespace] = ()
    claims: Iterable[PersistentVolumeClaim] = ()
    volumes: Iterable[PersistentVolume] = ()
    classes: Iterable[StorageClass] = ()


def snapshot_of(everything: Everything) -> Snapshot:
    snapshot = Snapshot()
    for namespace in everything.namespaces:
        snapshot.put_namespace(namespace.name, namespace.labels)
    for node in everything.nodes:
        snapshot.put_node(Offer.of(node))
    for pod in everything.pods:
        if pod.spec.node_name and pod.status.phase not in FINISHED:
            snapshot.put_pod(needs_of(pod), pod.spec.node_name)
    snapshot.storage.claims |= {(claim.namespace, claim.name): claim for claim in everything.claims}
    snapshot.storage.volumes |= {volume.name: volume for volume in everything.volumes}
    snapshot.storage.classes |= {one.name: one for one in everything.classes}
    return snapshot
