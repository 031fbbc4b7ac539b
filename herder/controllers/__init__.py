"""One module or folder per kind: watch, ask the rules, act. They meet only in objects."""

from herder.controllers.evacuation import Evacuation
from herder.controllers.instances import Instances
from herder.controllers.machines import Machines
from herder.controllers.migratability import Migratability
from herder.controllers.migration import Migrations
from herder.controllers.volumes import DataVolumes, Provisioner, Reclaimer
from herder.kube.kit import Start

# All of them. Whoever leads runs these.
CONTROLLERS: tuple[Start, ...] = (
    Machines.start,
    Instances.start,
    Migrations.start,
    Evacuation.start,
    DataVolumes.start,
    Provisioner.start,
    Reclaimer.start,
    Migratability.start,
)
