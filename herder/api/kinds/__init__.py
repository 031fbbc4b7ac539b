"""Typed, read-only views of our own kinds. `herder.api.registry` says how each is served."""

from herder.api.kinds.data_volume import DataVolume
from herder.api.kinds.instance import VirtualMachineInstance
from herder.api.kinds.kubevirt import KubeVirt
from herder.api.kinds.machine import VirtualMachine
from herder.api.kinds.migration import VirtualMachineInstanceMigration
from herder.api.kinds.migration_review import MigrationReview
from herder.api.kinds.pod_migration_job import PodMigrationJob
from herder.api.kinds.policy import MigrationPolicy
from herder.api.kinds.pool import VirtualMachinePool
from herder.api.kinds.reservation import Reservation, ReservationView

__all__ = [
    "DataVolume",
    "KubeVirt",
    "MigrationPolicy",
    "MigrationReview",
    "PodMigrationJob",
    "Reservation",
    "ReservationView",
    "VirtualMachine",
    "VirtualMachineInstance",
    "VirtualMachineInstanceMigration",
    "VirtualMachinePool",
]
