"""One module or folder per kind: watch, ask the rules, act. They meet only in objects."""

from herder.controllers.autoscaling import Autoscalers
from herder.controllers.configuration import ConfigurationEvents
from herder.controllers.evacuation import Evacuation
from herder.controllers.instance_metrics import InstanceMetrics
from herder.controllers.instances import Instances
from herder.controllers.job import PodMigrationJobs
from herder.controllers.kubevirts import SettingsStatus
from herder.controllers.machines import Machines
from herder.controllers.migratability import Migratability
from herder.controllers.migration import Migrations
from herder.controllers.nodes import NodeDeletions
from herder.controllers.policies import PolicyStatuses
from herder.controllers.pool import Pools
from herder.controllers.reservations import Reservations
from herder.controllers.reviews import MigrationReviews, ReviewExpiry
from herder.controllers.suspensions import Suspensions
from herder.controllers.volumes import DataVolumes, Provisioner, Reclaimer, Resizer, TemplateSizes
from herder.controllers.workloads import Deployments, ReplicaSets, StatefulSets
from herder.kube.kit import Start

# What is ours, wherever it runs. Whoever leads runs these.
CONTROLLERS: tuple[Start, ...] = (
    Machines.start,
    Instances.start,
    Migrations.start,
    Evacuation.start,
    Suspensions.start,
    DataVolumes.start,
    Provisioner.start,
    Reclaimer.start,
    Resizer.start,
    TemplateSizes.start,
    Migratability.start,
    NodeDeletions.start,
    MigrationReviews.start,
    ReviewExpiry.start,
    SettingsStatus.start,
    PolicyStatuses.start,
    Pools.start,
    Reservations.start,
    PodMigrationJobs.start,
    ConfigurationEvents.start,
    InstanceMetrics.start,
)
# What a real cluster has already: only where the engine is the embedded one. Two of them would undo each other's work.
EMBEDDED_ONLY: tuple[Start, ...] = (ReplicaSets.start, Deployments.start, StatefulSets.start, Autoscalers.start)
