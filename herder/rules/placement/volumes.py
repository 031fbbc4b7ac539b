"""Disks: a pod goes where its volumes can be reached, and waits for claims that have none yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from herder.api.core import PersistentVolume, PersistentVolumeClaim, StorageClass
from herder.api.storage import SELECTED_NODE
from herder.rules.placement.columns import Mask
from herder.rules.placement.events import Event, What
from herder.rules.placement.needs import Claim, Needs
from herder.rules.placement.node_match import nobody, reaching
from herder.rules.placement.nodes import Nodes
from herder.rules.placement.rule import Refusal, Rule
from herder.rules.placement.snapshot import Snapshot
from herder.rules.placement.storage import is_bound
from herder.rules.placement.unmet import has, unmet_selector

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NOT_FOUND = 'persistentvolumeclaim "{}" not found'
NOT_MADE = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "{}"'
DELETED = 'persistentvolumeclaim "{}" is being deleted'
LOST = 'persistentvolumeclaim "{}" bound to non-existent persistentvolume "{}"'
ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = 'persistentvolume "{}" not found'
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
WRONG_ZONE = "node(s) had no available volume zone"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)


class Volumes(Rule):
    name = "volumes"
    listens = frozenset({What.NODE_CAME, What.NODE_CHANGED, What.CLAIM_CHANGED, What.VOLUME_CHANGED, What.CLASS_CHANGED})

    def refuse_all(self, pod: Needs, snapshot: Snapshot) -> str:
        sentences = (self._waits_for(pod, claim, snapshot) for claim in pod.claims)
        said = next((sentence for sentence in sentences if sentence), "")
        if said or not pod.claims:
            return said
        claims = [snapshot.storage.claims[pod.namespace, claim.name] for claim in pod.claims]
        if any(not is_bound(one) and not snapshot.storage.binds_late(one) for one in claims):
            return UNBOUND
        missing = (one.spec.volume_name for one in claims if is_bound(one) and one.spec.volume_name not in snapshot.storage.volumes)
        return next((NO_VOLUME.format(name) for name in missing), "")

    def refuse(self, pod: Needs, snapshot: Snapshot) -> Sequence[Refusal]:
        if not pod.claims:
            return ()
        nodes, storage = snapshot.nodes, snapshot.storage
        elsewhere, unbindable, zones = nobody(nodes), nobody(nodes), nobody(nodes)
        for claim in (storage.claims[pod.namespace, one.name] for one in pod.claims):
            if is_bound(claim):
                volume = storage.volumes[claim.spec.volume_name]
                elsewhere |= ~_reachable(nodes, volume)
                zones |= _in_other_zone(nodes, volume)
            else:
                unbindable |= ~_can_be_made(nodes, claim, storage.class_of(claim))
        zones &= ~(elsewhere | unbindable)
        return (Refusal(ELSEWHERE, elsewhere), Refusal(NONE_TO_BIND, unbindable), Refusal(WRONG_ZONE, zones))

    def details(self, pod: Needs, rows: Sequence[int], snapshot: Snapshot) -> Iterable[list[str]]:
        claims = [snapshot.storage.claims[pod.namespace, one.name] for one in pod.claims]
        return ([said for claim in claims for said in _why_not(claim, row, snapshot)] for row in rows)

    def unblocked_by(self, pod: Needs, event: Event, snapshot: Snapshot) -> bool:
        if event.what is What.CLAIM_CHANGED:
            return event.namespace == pod.namespace and any(claim.name == event.name for claim in pod.claims)
        return bool(pod.claims)

    def _waits_for(self, pod: Needs, claim: Claim, snapshot: Snapshot) -> str:
        found = snapshot.storage.claims.get((pod.namespace, claim.name))
        if found is None:
            return (NOT_MADE if claim.ephemeral else NOT_FOUND).format(claim.name)
        if found.status.phase == "Lost":
            return LOST.format(claim.name, found.spec.volume_name)
        return DELETED.format(claim.name) if found.being_deleted else ""


def _reachable(nodes: Nodes, volume: PersistentVolume) -> Mask:
    affinity = volume.spec.node_affinity
    return reaching(nodes, affinity.required) if affinity is not None and affinity.required is not None else nodes.alive


def _why_not(claim: PersistentVolumeClaim, row: int, snapshot: Snapshot) -> Iterator[str]:
    nodes, storage = snapshot.nodes, snapshot.storage
    if is_bound(claim):
        volume = storage.volumes[claim.spec.volume_name]
        yield from (f"claim {claim.name}: volume {volume.name}: {said}" for said in _out_of_reach(nodes, volume, row))
        return
    its_class = storage.class_of(claim)
    if not _can_be_made(nodes, claim, its_class)[row]:
        yield f"claim {claim.name}: {_cannot_be_made(nodes, claim, its_class, row)}"


def _out_of_reach(nodes: Nodes, volume: PersistentVolume, row: int) -> Iterator[str]:
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None and not _reachable(nodes, volume)[row]:
        yield from unmet_selector(nodes, affinity.required, row)
    elif _in_other_zone(nodes, volume)[row]:
        for key in ZONE_LABELS:
            value = volume.labels.get(key)
            if value is not None and not nodes.labels.column(key).one_of(value.split("__"))[row]:
                yield f"{key}={value}: {has(nodes, key, row)}"


def _cannot_be_made(nodes: Nodes, claim: PersistentVolumeClaim, its_class: StorageClass | None, row: int) -> str:
    if its_class is None:
        return "its storage class is not there"
    if its_class.provisioner == NO_PROVISIONER:
        return f"nobody makes volumes of class {its_class.name}"
    if not _allowed_by(nodes, its_class)[row]:
        return f"allowedTopologies of class {its_class.name} leave the node out"
    return f"its volume is made for node {claim.annotations.get(SELECTED_NODE)}"


def _can_be_made(nodes: Nodes, claim: PersistentVolumeClaim, its_class: StorageClass | None) -> Mask:
    """Where a volume of a class that waits for its first pod can be made."""
    if its_class is None or its_class.provisioner == NO_PROVISIONER:
        return nobody(nodes)
    mask = _allowed_by(nodes, its_class)
    chosen = claim.annotations.get(SELECTED_NODE)
    if chosen is None:
        return mask
    only = nobody(nodes)
    row = nodes.rows.get(chosen)
    if row is not None:
        only[row] = True
    return mask & only


def _allowed_by(nodes: Nodes, its_class: StorageClass) -> Mask:
    if not its_class.allowed_topologies:
        return nodes.alive
    mask = nobody(nodes)
    for term in its_class.allowed_topologies:
        fits = [nodes.labels.column(test.key).one_of(test.values) for test in term.match_label_expressions]
        mask |= np.logical_and.reduce(fits) if fits else nodes.alive
    return mask


def _in_other_zone(nodes: Nodes, volume: PersistentVolume) -> Mask:
    """By the labels of old volumes. A node without any such label is asked nothing."""
    mask = nobody(nodes)
    for key in ZONE_LABELS:
        value = volume.labels.get(key)
        if value is not None:
            mask |= ~nodes.labels.column(key).one_of(value.split("__"))
    if mask.any():
        mask &= np.logical_or.reduce([nodes.labels.column(key).present() for key in ZONE_LABELS])
    return mask
