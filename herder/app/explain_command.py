"""`herder explain`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from herder.app.refusal import CANNOT_USE_CLUSTER, Refusal
from herder.app.scoring import scoring_option
from herder.cli.asking import WRONG_USE, Where, asks_a_cluster, connected
from herder.cli.asking import Refusal as AskingRefusal
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


@explain.command()
@click.argument("name", metavar="VMI")
@asks_a_cluster
async def policy(where: Where, name: str) -> None:
    """Show every MigrationPolicy: which applies to the instance VMI, and why the others do not.

    Below, the settings that a migration would run with now, and who decided each. Nothing is changed.
    """
    from herder.cli.explaining import explain_policy

    async with connected(where) as (client, namespace):
        await explain_policy(client, name, namespace, click.echo)


@explain.command()
@click.argument("name", metavar="VMI")
@click.option("--to", metavar="NODE", default="", help="Ask about this node alone, as `herder migrate --to` would.")
@click.option("--selector", metavar="EXPR", default="", help="Ask about nodes with these labels, such as disktype=ssd.")
@asks_a_cluster
async def target(where: Where, name: str, to: str, selector: str) -> None:
    """Show for each node whether the instance VMI could be migrated there, and if not, why.

    The answer is the scheduler's own, about the cluster as it is now. Nothing is changed.
    """
    from herder.cli.explaining import explain_target

    if to and selector:
        raise AskingRefusal("--to and --selector exclude each other: a node, or labels of nodes", WRONG_USE)
    async with connected(where) as (client, namespace):
        await explain_target(client, name, namespace, (to, selector), click.echo)


@explain.command()
@click.argument("name", metavar="[NODE|VM]", required=False)
@asks_a_cluster
async def migratability(where: Where, name: str | None) -> None:
    """Show where host-model guests can be moved to, and what the other nodes lack.

    Without a name: every node with its level, that is how many of the nodes would take a guest that is first started there. NODE|VM
    is a name, node/NAME or vm/NAME; of a machine what counts is the processor that its guest was started with.
    """
    from herder.cli.migratability import explain_migratability

    async with connected(where) as (client, namespace):
        await explain_migratability(client, name, namespace, click.echo)


@explain.command()
@click.option("--nodes", "selector", metavar="SELECTOR", help="Only nodes with these labels, for example zone=north.")
@asks_a_cluster
async def baseline(where: Where, selector: str | None) -> None:
    """Show the CPU model and features that all nodes have, and the level that each node would have if machines named them."""
    from herder.cli.migratability import explain_baseline

    async with connected(where) as (client, _):
        await explain_baseline(client, selector, click.echo)


def _refuse(sentence: str, code: int) -> None:
    click.echo(f"herder: {sentence}", err=True)
    sys.exit(code)
