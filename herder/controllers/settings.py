"""The settings of the cluster, as they are at this moment."""

from __future__ import annotations

from herder.api.kinds import KubeVirt
from herder.kube.cache import view_of
from herder.kube.kit import Kit
from herder.kube.resources import SETTINGS, Key
from herder.rules.configuration import NAME, NAMESPACE, ClusterMigrationSettings, cluster_migration_settings


class ClusterSettings:
    def __init__(self, kit: Kit) -> None:
        self.cache = kit.caches.of(SETTINGS)

    def kubevirt(self) -> KubeVirt | None:
        """One that cannot be read counts as none: guests are started and moved all the same."""
        return view_of(self.cache.stored(Key(NAMESPACE, NAME)))

    def of_migrations(self) -> ClusterMigrationSettings:
        return cluster_migration_settings(self.kubevirt())
