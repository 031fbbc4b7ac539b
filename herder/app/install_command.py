"""`herder install`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from herder.app.refusal import Refusal
from herder.cli.main import cli


@cli.command()
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="The kubeconfig of the cluster.  [default: as kubectl finds it]",
)
@click.option("--context", metavar="C", help="The context in it.  [default: its current one]")
@click.option("--dry-run", is_flag=True, help="Let the cluster check everything, and say what would be done.")
@click.option("--print", "print_only", is_flag=True, help="Print it all as YAML, and ask no cluster.")
@click.option("--webhook-url", metavar="URL", default="", help="Register the webhook, reached at https://HOST:PORT.")
@click.option("--webhook-service", is_flag=True, help="Register the webhook, reached by the Service herder-webhook.")
def install(
    kubeconfig: Path | None, context: str | None, dry_run: bool, print_only: bool, webhook_url: str, webhook_service: bool
) -> None:
    """Put herder's kinds, roles and the account of its controllers into a cluster, or bring them up to date.

    The webhook asks our rules before an object is stored (docs/webhook.md). Registered, it has to be answered: run the controllers
    with --webhook-listen. Without these options they register it themselves when they are given it.

    What another product installed is never touched: then nothing is.
    """
    from herder.app import install as installing
    from herder.app import installation

    if print_only:
        click.echo(installation.as_yaml(), nl=False)
        return
    try:
        webhook = installing.webhook_settings(webhook_url, webhook_service)
        asyncio.run(installing.install(kubeconfig, context, dry_run, click.echo, webhook))
    except Refusal as refusal:
        click.echo(f"herder: {refusal}", err=True)
        sys.exit(refusal.code)
