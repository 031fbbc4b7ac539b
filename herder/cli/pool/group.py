"""The groups `herder pool` and `herder pool rollout`."""

from __future__ import annotations

from herder.cli.main import cli


@cli.group()
def pool() -> None:
    """Look at pools of virtual machines, change what is in them, and roll out their templates."""


@pool.group()
def rollout() -> None:
    """Follow, hold, repeat and take back what a changed template does to the machines of a pool."""
