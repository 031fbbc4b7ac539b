"""What the plan for a migration is made from: the objects around it, the policy that applies, and the nodes there are."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api import labels, reasons
from herder.api.core import Node, Pod
from herder.api.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
from herder.controllers.launchers import LAUNCHERS_IN, LAUNCHERS_OF
from herder.controllers.migration.index import BY_INSTANCE, instance_of
from herder.controllers.nodes import BoundNodes
from herder.controllers.settings import ClusterSettings, known_policies
from herder.kube.cache import Change, Stored, owned, view_of
from herder.kube.kit import Kit
from herder.kube.resources import (
    CLAIMS,
    INSTANCES,
    MIGRATIONS,
    NAMESPACES,
    NODES,
    PODS,
    RESERVATIONS,
    STORAGE_CLASSES,
    VOLUMES,
    Key,
)
from herder.rules.configuration import ClusterMigrationSettings, effective
from herder.rules.migration import MigrationSnapshot, phase_of
from herder.rules.migration.phases import finished
from herder.rules.migration.snapshot import Prepared, Timeouts
from herder.rules.migration.waiting import ticket_of
from herder.rules.migration.where import asked_about, no_node_ever
from herder.rules.placement import Offer, Snapshot
from herder.rules.placement.gather import Everything, snapshot_of
from herder.rules.targets import Asked, added_by, why_waiting

Document = dict[str, Any]


class Looking:
    def __init__(self, kit: Kit) -> None:
        self.migrations = kit.caches.of(MIGRATIONS)
        self.instances = kit.caches.of(INSTANCES)
        self.pods = kit.caches.of(PODS)
        self.nodes = kit.caches.of(NODES)
        self._bound = BoundNodes(kit)
        self._namespaces = kit.caches.of(NAMESPACES)
        self.settings = ClusterSettings(kit)
        self._caches = kit.caches
        # Asked for only when somebody waits for a place; by then they have to be known.
        self._everything = [kit.caches.of(one) for one in (PODS, CLAIMS, VOLUMES, STORAGE_CLASSES, RESERVATIONS)]
        self.migrations.add_index(BY_INSTANCE)
        self.pods.add_index(LAUNCHERS_OF)
        self.pods.add_index(LAUNCHERS_IN)
        self._policies = known_policies(kit)
        self._node_offers = Snapshot()
        self.nodes.subscribe(self._node_changed)

    def of_instance(self, namespace: str, name: str) -> list[VirtualMachineInstanceMigration]:
        return self.migrations.by(BY_INSTANCE, instance_of(namespace, name))

    def keys_of_instance(self, namespace: str, name: str) -> tuple[Key, ...]:
        return self.migrations.keys_by(BY_INSTANCE, instance_of(namespace, name))

    def leaves(self, name: tuple[str, str]) -> str:
        """The node that a waiting migration would leave; empty where it could not begin anyway. It follows from this migration, its
        instance, and the other migrations of that."""
        migration = view_of(self.migrations.stored(Key(*name)))
        if migration is None or migration.being_deleted or self._rival(migration):
            return ""
        instance = view_of(self.instances.stored(Key(migration.namespace, migration.spec.vmi_name)))
        status = instance.status if instance is not None else None
        return (status.node_name or "") if status is not None and status.phase == "Running" else ""

    async def snapshot(self, stored: Stored[VirtualMachineInstanceMigration], crowded: tuple[str, ...]) -> MigrationSnapshot:
        migration = stored.view
        instance = self._instance(migration)
        pods = self._pods(migration, instance)
        nodes = await self._bound.of(pods)
        cluster = self.settings.of_migrations()
        pending = phase_of(migration) == "Pending"
        return MigrationSnapshot(
            migration=migration,
            instance=instance,
            instance_document=self._document(migration) if instance is not None else {},
            pods=pods,
            nodes=nodes,
            rival=self._rival(migration) if pending else "",
            prepared=self._prepared(migration, instance, cluster) if pending and instance is not None else None,
            timeouts=Timeouts(cluster.unschedulable_pending_timeout, cluster.pending_timeout),
            crowded=crowded,
            no_place=self._no_place(migration, instance, pods) if phase_of(migration) == "Scheduling" else "",
        )

    def _instance(self, migration: VirtualMachineInstanceMigration) -> VirtualMachineInstance | None:
        """Of an instance that cannot be read nothing is known: that is no reason to believe that there is none."""
        return self.instances.get(Key(migration.namespace, migration.spec.vmi_name))

    def _document(self, migration: VirtualMachineInstanceMigration) -> Document:
        return msgspec.json.decode(self.instances.raw(Key(migration.namespace, migration.spec.vmi_name)) or b"{}")

    def _pods(self, migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance | None) -> tuple[Pod, ...]:
        """Of an instance that is gone: those that remember this migration."""
        if instance is not None:
            found = self.pods.by(LAUNCHERS_OF, owned(instance.namespace, instance.uid))
        else:
            found = [pod for pod in self.pods.by(LAUNCHERS_IN, migration.namespace) if self._remembers(pod, migration)]
        return tuple(sorted(found, key=lambda pod: (str(pod.metadata.creation_timestamp), pod.name)))

    def _remembers(self, pod: Pod, migration: VirtualMachineInstanceMigration) -> bool:
        state = migration.status.migration_state if migration.status else None
        source = state.source_pod if state is not None else None
        return pod.labels.get(labels.MIGRATION_UID) == migration.uid or pod.name == source

    def _rival(self, migration: VirtualMachineInstanceMigration) -> str:
        """Another one of the same instance that goes first: it has begun, or is older."""
        mine = ticket_of(migration)
        for other in self.of_instance(migration.namespace, migration.spec.vmi_name):
            if other.uid == migration.uid or finished(other):
                continue
            theirs = ticket_of(other)
            if phase_of(other) != "Pending" or (theirs.made_at, theirs.name) < (mine.made_at, mine.name):
                return other.name
        return ""

    def _prepared(
        self,
        migration: VirtualMachineInstanceMigration,
        instance: VirtualMachineInstance,
        cluster: ClusterMigrationSettings,
    ) -> Prepared:
        namespace = self._namespaces.stored(Key("", migration.namespace))
        chosen = self._policies.chosen(instance.labels, namespace.labels if namespace is not None else {})
        settings = effective(cluster, chosen.settings)
        return Prepared(chosen.applied(), settings, self._impossible(migration, instance))

    def _impossible(self, migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance) -> tuple[str, str]:
        added = added_by(migration.spec)
        try:
            found = no_node_ever(instance, self._document(migration), added, self._node_offers, self.nodes.list)
        except ValueError as error:
            return reasons.INVALID, f"spec.addedNodeSelectorTerm: {error}"
        return (found.reason, found.message) if found is not None else ("", "")

    def _no_place(
        self, migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance | None, pods: tuple[Pod, ...]
    ) -> str:
        """Only for a target whose scheduler has said that there is none."""
        target = next((pod for pod in pods if pod.labels.get(labels.MIGRATION_UID) == migration.uid), None)
        refused = any(one.type == "PodScheduled" and one.status == "False" for one in target.status.conditions) if target else False
        if not refused or instance is None:
            return ""
        return why_waiting(self._asked(migration, instance), self._everything_now())

    def _everything_now(self) -> Snapshot:
        of = self._caches.of
        return snapshot_of(
            Everything(
                nodes=self.nodes.list(),
                pods=of(PODS).list(),
                namespaces=self._namespaces.list(),
                claims=of(CLAIMS).list(),
                volumes=of(VOLUMES).list(),
                classes=of(STORAGE_CLASSES).list(),
                reservations=of(RESERVATIONS).list(),
            )
        )

    def _asked(self, migration: VirtualMachineInstanceMigration, instance: VirtualMachineInstance) -> Asked:
        return asked_about(instance, self._document(migration), added_by(migration.spec))

    def _node_changed(self, change: Change[Node]) -> None:
        node = view_of(change.new)
        if node is not None:
            self._node_offers.put_node(Offer.of(node))
        else:
            self._node_offers.remove_node(change.key.name)
