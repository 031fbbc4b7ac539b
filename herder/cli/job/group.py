"""The group `herder job`, and the argument of its commands."""

from __future__ import annotations

import click

from herder.cli.completion import names_of
from herder.cli.main import cli

job_argument = click.argument("name", metavar="JOB", shell_complete=names_of("job"))
# As kubectl names a job that it has changed.
RESOURCE = "podmigrationjob.scheduling.koordinator.sh"


@cli.group()
def job() -> None:
    """Look at PodMigrationJobs, and hold or end them. `herder evacuate` makes them."""
