"""Claims, volumes and classes, as far as they say where pods may go."""

from __future__ import annotations

from collections import Counter

from herder.api.core import PersistentVolume, PersistentVolumeClaim, StorageClass

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
ONE_POD = "ReadWriteOncePod"
# The class before it had a field of its own.
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
LATE = "WaitForFirstConsumer"


class Storage:
    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        # How many placed pods use a claim.
        self.users: Counter[tuple[str, str]] = Counter()

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        name = claim.annotations.get(OLD_CLASS) or claim.spec.storage_class_name or ""
        return self.classes.get(name)

    def binds_late(self, claim: PersistentVolumeClaim) -> bool:
        """Whether its volume is made only once it is known where the pod goes."""
        found = self.class_of(claim)
        return found is not None and found.volume_binding_mode == LATE


def is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.annotations
