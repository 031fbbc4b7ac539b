"""`herder controllers`."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import click

from herder.app import logs
from herder.app.address import Address, listen_on
from herder.app.data_directory import DataDirectory
from herder.app.refusal import WRONG_USE, Refusal
from herder.cli.main import cli

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
    data: Path | None,
    identity: str,
    ready_fd: int | None,
) -> None:
    """Run the controllers against any engine. Several may run: one works, the others stand by.

    `herder up` runs them by itself; this is for a cluster that runs already.
    """
    from herder.app import controllers_process
    from herder.app.cluster import connect_to
    from herder.controllers import CONTROLLERS
    from herder.kube.http import HttpTransport
    from herder.kube.leases import Settings as LeaseSettings
    from herder.kube.resources import Key
    from herder.scheduler import EMBEDDED_NAMES, NAMES, scheduler

    # Under `herder up` only what a person has to know: its terminal is for that.
    logs.configure("controllers", logging.WARNING if data else logging.INFO)

    async def run() -> int:
        agent = controllers_process.NAME
        transport = HttpTransport.over_socket(DataDirectory(data).socket, agent) if data else connect_to(kubeconfig, context, agent)
        listener = listen_on("--metrics-listen", *metrics_listen) if metrics_listen else None
        settings = controllers_process.Settings(times, identity, ready_fd)
        # The embedded engine has no other scheduler.
        placing = scheduler(EMBEDDED_NAMES if data else NAMES)
        return await controllers_process.run(transport, settings, (*CONTROLLERS, placing), listener)

    try:
        times = LeaseSettings(Key(*lease), lease_duration, renew_deadline, retry_period)
    except ValueError as error:
        _refuse(str(error), WRONG_USE)
        return
    try:
        sys.exit(asyncio.run(run()))
    except Refusal as refusal:
        _refuse(str(refusal), refusal.code)


def _refuse(sentence: str, code: int) -> None:
    click.echo(f"herder: {sentence}", err=True)
    sys.exit(code)
