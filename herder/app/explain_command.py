"""`herder explain`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from herder.app.refusal import CANNOT_USE_CLUSTER, Refusal
from herder.app.scoring import scoring_option
from herder.cli.main import cli

if TYPE_CHECKING:
    from herder.rules.placement import Scoring


@cli.group()
def explain() -> None:
    """Say why things are as they are."""


@explain.command()
@click.argument("name", metavar="POD|VM")
@click.option("--namespace", "-n", default="default", show_default=True, help="Where it is.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="The cluster.  [default: as kubectl]")
@click.option("--context", metavar="C", help="Which context of the kubeconfig.  [default: its current one]")
@scoring_option
def placement(name: str, namespace: str, kubeconfig: Path | None, context: str | None, scoring: Scoring) -> None:
    """Show for each node whether the pod fits, and the first rule that says no.

    POD|VM is a name, pod/NAME or vm/NAME. The answer is the scheduler's own: the same rules, asked about the cluster as it is now.
    Name the --scoring that the scheduler was started with.
    """
    from herder.app.cluster import connect_to
    from herder.cli.placement import NoSuch, explain_placement
    from herder.kube.client import Client
    from herder.kube.errors import KubeError

    async def run() -> None:
        async with Client(connect_to(kubeconfig, context, "herder-explain"), "herder-explain") as client:
            await explain_placement(client, name, namespace, click.echo, scoring)

    try:
        asyncio.run(run())
    except Refusal as refusal:
        _refuse(str(refusal), refusal.code)
    except (NoSuch, KubeError) as error:
        _refuse(str(error), CANNOT_USE_CLUSTER)


def _refuse(sentence: str, code: int) -> None:
    click.echo(f"herder: {sentence}", err=True)
    sys.exit(code)
