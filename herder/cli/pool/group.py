"""The groups `herder pool` and `herder pool rollout`, and the arguments of their commands."""

from __future__ import annotations

import click

from herder.cli.completion import names_of
from herder.cli.main import cli

pool_argument = click.argument("name", metavar="POOL", shell_complete=names_of("pool"))
machine_argument = click.argument("machine", metavar="VM", shell_complete=names_of("vm"))


@cli.group()
def pool() -> None:
    """Look at pools of virtual machines, change what is in them, and roll out their templates."""


@pool.group()
def rollout() -> None:
    """Follow, hold, repeat and take back what a changed template does to the machines of a pool."""
