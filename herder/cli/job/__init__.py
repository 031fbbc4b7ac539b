"""`herder job` and `herder evacuate`: each module adds its commands."""

from herder.cli.job import control as control
from herder.cli.job import evacuate as evacuate
from herder.cli.job import listing as listing
from herder.cli.job import report as report
from herder.cli.job.group import job as job
