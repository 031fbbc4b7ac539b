"""The command line: nothing but asking and showing. `up` is added by the app, which alone may start things."""

from __future__ import annotations

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="herder", prog_name="herder")
def cli() -> None:
    """Keeps herds of virtual machines running, and moves them and pods between nodes without dropping a beat."""
