"""What decides how guests are moved, as it is at this moment: the settings of the cluster, and its policies."""

from __future__ import annotations

from collections.abc import Callable

from herder.api.kinds import KubeVirt, MigrationPolicy
from herder.kube.cache import Change, view_of
from herder.kube.kit import Kit
from herder.kube.resources import POLICIES, SETTINGS, Key
from herder.rules.configuration import NAME, NAMESPACE, ClusterMigrationSettings, cluster_migration_settings
from herder.rules.policies import Policies


class ClusterSettings:
    def __init__(self, kit: Kit) -> None:
        self.cache = kit.caches.of(SETTINGS)

    def kubevirt(self) -> KubeVirt | None:
        """One that cannot be read counts as none: guests are started and moved all the same."""
        return view_of(self.cache.stored(Key(NAMESPACE, NAME)))

    def subscribe(self, handler: Callable[[], None]) -> None:
        """Called when the settings may be others: not for what is reported about them, which is all that most events are."""

        def changed(change: Change[KubeVirt]) -> None:
            old, new = view_of(change.old), view_of(change.new)
            if (old.spec if old is not None else None) != (new.spec if new is not None else None):
                handler()

        self.cache.subscribe(changed)

    def of_migrations(self) -> ClusterMigrationSettings:
        return cluster_migration_settings(self.kubevirt())


def known_policies(kit: Kit) -> Policies:
    """Follows the cache from now on."""
    policies = Policies()

    def changed(change: Change[MigrationPolicy]) -> None:
        policy = view_of(change.new)
        if policy is not None:
            policies.add(policy)
        else:
            policies.remove(change.key.name)

    kit.caches.of(POLICIES).subscribe(changed)
    return policies
