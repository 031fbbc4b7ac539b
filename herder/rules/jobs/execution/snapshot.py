"""What one look at a job sees."""

from __future__ import annotations

import msgspec

from herder.api.core import Deployment, Node, Pod, ReplicaSet
from herder.api.kinds import (
    PodMigrationJob,
    ReservationView,
    VirtualMachineInstance,
    VirtualMachineInstanceMigration,
)
from herder.rules.herder_config import JobsConfig
from herder.rules.jobs.workload import Workload
from herder.rules.plans import Document


class JobSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    job: PodMigrationJob
    config: JobsConfig
    # The very pod that is meant (`status.podUID`); None where it is gone, or another one has its name.
    pod: Pod | None = None
    # Of that pod, while it is there; None for a bare one.
    workload: Workload | None = None
    # Pod and reservation template as they are stored, with all that views leave out. Read only where a reservation is to be made.
    written_pod: Document | None = None
    written_template: Document | None = None
    # What `spec.reservationOptions.reservationRef` names, or would be named by us.
    reservation: ReservationView | None = None
    # Its node, if there is such a node.
    reserved_node: Node | None = None
    # Pods with a node that took it and that it is for, in the order of their creation.
    takers: tuple[Pod, ...] = ()
    # Other unfinished jobs that refer to the same reservation, by name.
    reservation_used_by: tuple[str, ...] = ()
    # Pods of `status.controllerRef` that have not ended, and how many it wants. None: that is not known. `controller_gone`: it is
    # not there any more, or is being deleted.
    siblings: tuple[Pod, ...] = ()
    wanted_replicas: int | None = None
    controller_gone: bool = False
    # Replacements that other jobs of the same controller still wait for; and the pods, by uid, that those jobs have begun to evict.
    replacements_due: int = 0
    leaving: frozenset[str] = frozenset()
    # What `status.controllerRef` names (the very one, by its uid), where that is a ReplicaSet; read for jobs that surge.
    replica_set: ReplicaSet | None = None
    # What `status.workloadRef` names, the very one; and how many other jobs of the same controller replace a pod first that were
    # admitted before this one, or have begun to. Both are read for jobs that surge, until their pod is let go.
    deployment: Deployment | None = None
    surging_before: int = 0
    # Other controllers that would take the pod in once its own lets it go, each as "Kind name"; read for jobs that surge.
    would_adopt: tuple[str, ...] = ()
    # Of a pod of a machine, with all migrations of it.
    instance: VirtualMachineInstance | None = None
    # As it is stored. Read only where room is to be reserved for its guest.
    written_instance: Document | None = None
    migrations: tuple[VirtualMachineInstanceMigration, ...] = ()
