"""What the volumes of a pod say about where it may run, in the words of kube-scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from herder.api.core import PersistentVolumeClaim, Pod
from herder.api.node_selector import NodeSelector

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NOT_FOUND = 'persistentvolumeclaim "{}" not found'
DELETED = 'persistentvolumeclaim "{}" is being deleted'
LOST = 'persistentvolumeclaim "{}" bound to non-existent persistentvolume "{}"'
CONFLICT = "node(s) didn't match PersistentVolume's node affinity"


class Disks(msgspec.Struct, frozen=True):
    # Empty unless the pod has to wait, wherever it would go.
    waits: str = ""
    selectors: tuple[NodeSelector, ...] = ()

    def allow(self, labels: dict[str, str], name: str) -> bool:
        return all(selector.matches(labels, name) for selector in self.selectors)


def claims_of(pod: Pod) -> list[str]:
    named = [volume.persistent_volume_claim for volume in pod.spec.volumes]
    return [one.claim_name for one in named if one is not None]


def disks_of(
    pod: Pod,
    claim: Callable[[str], PersistentVolumeClaim | None],
    volume: Callable[[str], dict[str, Any] | None],
) -> Disks:
    """`claim` by its name in the pod's namespace; `volume` as it is stored."""
    selectors: list[NodeSelector] = []
    for name in claims_of(pod):
        found = claim(name)
        if found is None:
            return Disks(NOT_FOUND.format(name))
        if found.being_deleted:
            return Disks(DELETED.format(name))
        if not found.spec.volume_name or found.status.phase != "Bound":
            return Disks(UNBOUND)
        document = volume(found.spec.volume_name)
        if document is None:
            return Disks(LOST.format(name, found.spec.volume_name))
        required = (document["spec"].get("nodeAffinity") or {}).get("required")
        if required is not None:
            selectors.append(NodeSelector(required))
    return Disks(selectors=tuple(selectors))
