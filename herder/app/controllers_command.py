"""`herder controllers`."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from herder.app import logs
from herder.app.address import Address, listen_on
from herder.app.data_directory import DataDirectory
from herder.app.refusal import WRONG_USE, Refusal
from herder.app.scoring import scoring_option
from herder.cli.main import cli

if TYPE_CHECKING:
    from herder.kube.webhook import Settings as WebhookSettings
    from herder.rules.placement import Scoring

SECONDS = click.FloatRange(min=0, min_open=True)


class LeaseName(click.ParamType[tuple[str, str]]):
    name = "NAMESPACE/NAME"

    def convert(self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        namespace, separator, name = value.partition("/")
        if not (namespace and separator and name) or "/" in name:
            self.fail(f"{value!r} is not NAMESPACE/NAME, such as kube-system/herder-controllers", param, ctx)
        return namespace, name


@cli.command()
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="The cluster, and who we are there.  [default: as kubectl]")
@click.option("--context", metavar="C", help="Which context of the kubeconfig.  [default: its current one]")
@click.option(
    "--lease",
    type=LeaseName(),
    default="kube-system/herder-controllers",
    show_default=True,
    help="Of all that name the same Lease one works.",
)
@click.option(
    "--lease-duration",
    type=click.IntRange(1),
    default=15,
    show_default=True,
    metavar="S",
    help="How long others wait for a leader that says nothing.",
)
@click.option(
    "--renew-deadline",
    type=SECONDS,
    default=10.0,
    show_default=True,
    metavar="S",
    help="When a leader that cannot renew stops working.",
)
@click.option("--retry-period", type=SECONDS, default=2.0, show_default=True, metavar="S", help="How often the lease is renewed.")
@click.option("--metrics-listen", type=Address(), help="Where /healthz, /readyz and /metrics are served.  [default: nowhere]")
@click.option("--webhook-listen", type=Address(), help="Where the API server asks our rules (docs/webhook.md).  [default: nowhere]")
@click.option(
    "--webhook-url",
    metavar="URL",
    default="",
    help="How the API server reaches it, https://HOST:PORT.  [default: by the Service herder-webhook]",
)
@scoring_option
@click.option("--node-monitor-grace-period", type=SECONDS, default=50.0, hidden=True)
@click.option("--data", type=click.Path(path_type=Path), hidden=True)
@click.option("--identity", default="", hidden=True)
@click.option("--ready-fd", type=int, hidden=True)
def controllers(
    kubeconfig: Path | None,
    context: str | None,
    lease: tuple[str, str],
    lease_duration: int,
    renew_deadline: float,
    retry_period: float,
    metrics_listen: tuple[str, int] | None,
    webhook_listen: tuple[str, int] | None,
    webhook_url: str,
    scoring: Scoring,
    node_monitor_grace_period: float,
    data: Path | None,
    identity: str,
    ready_fd: int | None,
) -> None:
    """Run the controllers against any engine. Several may run: one works, the others stand by.

    `herder up` runs them by itself; this is for a cluster that runs already.
    """
    from herder.app import controllers_process
    from herder.app.cluster import connect_to
    from herder.app.controllers_choice import Choices, controllers_for
    from herder.app.identities import controllers_transport
    from herder.app.scrape import listen_for_scrapes
    from herder.kube.leases import Settings as LeaseSettings
    from herder.kube.resources import Key
    from herder.rules.node_lifecycle import Patience

    # Under `herder up` only what a person has to know: its terminal is for that.
    logs.configure("controllers", logging.WARNING if data else logging.INFO)

    async def run() -> int:
        agent = controllers_process.NAME
        transport = controllers_transport(DataDirectory(data), agent) if data else connect_to(kubeconfig, context, agent)
        if data:
            # The engine shows our numbers with its own.
            listener = listen_for_scrapes(DataDirectory(data), "controllers")
        else:
            listener = listen_on("--metrics-listen", *metrics_listen) if metrics_listen else None
        settings = controllers_process.Settings(times, identity, ready_fd, webhook)
        choices = Choices(Patience(grace=node_monitor_grace_period), scoring)
        # Only the supervisor of an embedded engine names its data directory. A kubeconfig may lead to any cluster.
        starts = controllers_for(embedded=data is not None, choices=choices)
        return await controllers_process.run(transport, settings, starts, listener)

    try:
        times = LeaseSettings(Key(*lease), lease_duration, renew_deadline, retry_period)
        webhook = _webhook(webhook_listen, webhook_url)
    except ValueError as error:
        _refuse(str(error), WRONG_USE)
        return
    try:
        sys.exit(asyncio.run(run()))
    except Refusal as refusal:
        _refuse(str(refusal), refusal.code)


def _webhook(listen: tuple[str, int] | None, url: str) -> WebhookSettings | None:
    from herder.kube.webhook import BadUrl
    from herder.kube.webhook import Settings as WebhookSettings

    if listen is None:
        if url:
            raise ValueError("--webhook-url: say with --webhook-listen HOST:PORT where it is answered")
        return None
    try:
        return WebhookSettings(host=listen[0], port=listen[1], url=url)
    except BadUrl as error:
        raise ValueError(f"--webhook-url: {error}") from None


def _refuse(sentence: str, code: int) -> None:
    click.echo(f"herder: {sentence}", err=True)
    sys.exit(code)
