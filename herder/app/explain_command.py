"""`herder explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from herder.app.scoring import scoring_option
from herder.cli.asking import WRONG_USE, Refusal, Where, asks_a_cluster, connected
from herder.cli.completion import names_of
from herder.cli.main import cli
from herder.cli.output import output_option, show

if TYPE_CHECKING:
    from herder.cli.output import Format
    from herder.rules.placement import Scoring


@cli.group()
def explain() -> None:
    """Say why things are as they are."""


@explain.command()
@click.argument("name", metavar="POD|VM", shell_complete=names_of("pod", "vm"))
@scoring_option
@output_option
@asks_a_cluster
async def placement(where: Where, name: str, scoring: Scoring, output: Format | None) -> None:
    """Show for each node whether the pod fits, and the first rule that says no.

    POD|VM is a name, pod/NAME or vm/NAME. The answer is the scheduler's own: the same rules, asked about the cluster as it is now.
    Name the --scoring that the scheduler was started with.
    """
    from herder.cli.placement import explain_placement, placement_text

    async with connected(where) as (client, namespace):
        show(await explain_placement(client, name, namespace, scoring), placement_text, output)


@explain.command()
@click.argument("name", metavar="JOB", shell_complete=names_of("job"))
@output_option
@asks_a_cluster
async def job(where: Where, name: str, output: Format | None) -> None:
    """Show which limit holds the PodMigrationJob JOB and since when, who is ahead of it and why, and what would change it.

    Of one that runs: what it waits for. Of one that is over: how it ended. The answer is the controller's own: the same rules,
    asked about the cluster as it is now.
    """
    from herder.cli.job.explain import explain_job_now, explanation_text

    async with connected(where) as (client, _):
        show(await explain_job_now(client, name), explanation_text, output)


@explain.command()
@click.argument("name", metavar="VMI", shell_complete=names_of("vmi"))
@output_option
@asks_a_cluster
async def policy(where: Where, name: str, output: Format | None) -> None:
    """Show every MigrationPolicy: which applies to the instance VMI, and why the others do not.

    Below, the settings that a migration would run with now, and who decided each. Nothing is changed.
    """
    from herder.cli.explaining import explain_policy, policy_text

    async with connected(where) as (client, namespace):
        show(await explain_policy(client, name, namespace), policy_text, output)


@explain.command()
@click.argument("name", metavar="VMI", shell_complete=names_of("vmi"))
@click.option(
    "--to",
    metavar="NODE",
    default="",
    help="Ask about this node alone, as `herder migrate --to` would.",
    shell_complete=names_of("node"),
)
@click.option("--selector", metavar="EXPR", default="", help="Ask about nodes with these labels, such as disktype=ssd.")
@output_option
@asks_a_cluster
async def target(where: Where, name: str, to: str, selector: str, output: Format | None) -> None:
    """Show for each node whether the instance VMI could be migrated there, and if not, why.

    The answer is the scheduler's own, about the cluster as it is now. Nothing is changed.
    """
    from herder.cli.explaining import explain_target, target_text

    if to and selector:
        raise Refusal("--to and --selector exclude each other: a node, or labels of nodes", WRONG_USE)
    async with connected(where) as (client, namespace):
        show(await explain_target(client, name, namespace, (to, selector)), target_text, output)


@explain.command()
@click.argument("name", metavar="[NODE|VM]", required=False, shell_complete=names_of("node", "vm"))
@output_option
@asks_a_cluster
async def migratability(where: Where, name: str | None, output: Format | None) -> None:
    """Show where host-model guests can be moved to, and what the other nodes lack.

    Without a name: every node with its level, that is how many of the nodes would take a guest that is first started there. NODE|VM
    is a name, node/NAME or vm/NAME; of a machine what counts is the processor that its guest was started with.
    """
    from herder.cli.migratability import explain_migratability, migratability_text

    async with connected(where) as (client, namespace):
        show(await explain_migratability(client, name, namespace), migratability_text, output)


@explain.command()
@click.option("--nodes", "selector", metavar="SELECTOR", help="Only nodes with these labels, for example zone=north.")
@output_option
@asks_a_cluster
async def baseline(where: Where, selector: str | None, output: Format | None) -> None:
    """Show the CPU model and features that all nodes have, and the level that each node would have if machines named them."""
    from herder.cli.migratability import baseline_text, explain_baseline

    async with connected(where) as (client, _):
        show(await explain_baseline(client, selector), baseline_text, output)
