"""`herder pool`: each module adds its commands."""

from herder.cli.pool import members as members
from herder.cli.pool import plan as plan
from herder.cli.pool import preserved as preserved
from herder.cli.pool import report as report
from herder.cli.pool import rollout as rollout
from herder.cli.pool.group import pool as pool
