"""`herder migrate` and `herder cancel`: a migration is made or deleted, and with --wait it is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from herder.cli.asking import WRONG_USE, Refusal, Where, asks_a_cluster, connected
from herder.cli.completion import names_of
from herder.cli.main import cli
from herder.cli.timeouts import MIGRATIONS as PATIENCE
from herder.cli.timeouts import chosen, timeout_option, within

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachineInstanceMigration
    from herder.kube.client import Client

Document = dict[str, Any]
PRIORITIES = ("system-critical", "user-triggered", "system-maintenance")


@cli.command()
@click.argument("machine", metavar="VM", shell_complete=names_of("vm"))
@click.option(
    "--to",
    metavar="NODE",
    help="Only to this node.  [default: wherever the scheduler finds best]",
    shell_complete=names_of("node"),
)
@click.option("--selector", metavar="EXPR", help="Only to nodes with these labels, as for kubectl -l.")
@click.option("--priority", type=click.Choice(PRIORITIES), default="user-triggered", show_default=True, help="Who goes first.")
@click.option("--wait", is_flag=True, help="Follow it until it is over.")
@timeout_option(PATIENCE)
@asks_a_cluster
async def migrate(
    where: Where, machine: str, to: str | None, selector: str | None, priority: str, wait: bool, timeout: float | None
) -> None:
    """Move the running guest of VM to another node, without stopping it.

    Where no node there is can ever take it, that is said, and no migration is made.
    """
    from herder.cli.preflight import refuse_what_cannot_be
    from herder.kube.resources import MIGRATIONS, Key

    if to and selector:
        raise Refusal("--to and --selector exclude each other: a node, or labels of nodes", WRONG_USE)
    spec: Document = {"vmiName": machine, "priority": priority}
    term = _term(to, selector)
    if term:
        spec["addedNodeSelectorTerm"] = term
    document = {"metadata": {"generateName": f"{machine[:200]}-"}, "spec": spec}
    async with connected(where) as (client, namespace):
        await refuse_what_cannot_be(client, Key(namespace, machine), term)
        made = await client.create(MIGRATIONS, document, namespace)
        click.echo(f"virtualmachineinstancemigration.kubevirt.io/{made.name} created")
        if wait or timeout is not None:
            await _follow(client, made, where, chosen(timeout, PATIENCE))


@cli.command()
@click.argument("name", metavar="VM|MIGRATION", shell_complete=names_of("vm", "migration"))
@click.option("--wait", is_flag=True, help="Follow it until it is over.")
@timeout_option(PATIENCE)
@asks_a_cluster
async def cancel(where: Where, name: str, wait: bool, timeout: float | None) -> None:
    """Cancel the migration of VM, or the migration of this name. The guest goes on where it is."""
    from herder.kube.errors import NotFound
    from herder.kube.resources import MIGRATIONS, Key

    async with connected(where) as (client, namespace):
        found = await _unfinished(client, namespace, name)
        for migration in found:
            try:
                await client.delete(MIGRATIONS, Key(namespace, migration.name), uid=migration.uid)
            except NotFound:
                continue
            click.echo(f"virtualmachineinstancemigration.kubevirt.io/{migration.name} is being cancelled")
        if wait or timeout is not None:
            await _all_gone(client, found, where, chosen(timeout, PATIENCE))


async def _unfinished(client: Client, namespace: str, name: str) -> list[VirtualMachineInstanceMigration]:
    from herder.kube.client import Selection
    from herder.kube.resources import MIGRATIONS
    from herder.rules.migration.phases import finished

    listed = (await client.list(MIGRATIONS, Selection(namespace))).items
    meant = [one for one in listed if name in (one.name, one.spec.vmi_name)]
    found = [one for one in meant if not finished(one)]
    if not found:
        over = f"; {meant[-1].name} is already over" if meant else ""
        raise Refusal(f"there is no migration of {name!r} to cancel in namespace {namespace!r}{over}")
    return found


def _term(to: str | None, selector: str | None) -> Document:
    from herder.rules.targets import written_term

    try:
        return written_term(to or "", selector or "")
    except ValueError as error:
        raise Refusal(str(error), WRONG_USE) from None


def _ways(name: str, where: Where) -> str:
    there = f" -n {where.namespace}" if where.namespace else ""
    return f"`kubectl get vmim {name}{there} --watch` follows it, `herder cancel {name}{there}` ends it"


async def _follow(client: Client, migration: VirtualMachineInstanceMigration, where: Where, timeout: float | None) -> None:
    from herder.cli.migration_follower import MigrationFollower
    from herder.cli.progress import display
    from herder.rules.migration.shown import waits_for

    def not_yet() -> str:
        return f"it is not over yet: {waits_for(follower.now)}. It goes on: {_ways(migration.name, where)}"

    with display() as shown:
        follower = MigrationFollower(client, migration, shown)
        async with within(timeout, not_yet):
            await follower.until_over()


async def _all_gone(client: Client, migrations: list[VirtualMachineInstanceMigration], where: Where, timeout: float | None) -> None:
    from herder.cli.migration_follower import MigrationFollower
    from herder.cli.progress import display
    from herder.rules.migration.shown import waits_for

    with display() as shown:
        for migration in migrations:
            follower = MigrationFollower(client, migration, shown)

            def not_yet(follower: MigrationFollower = follower) -> str:
                there = f" -n {where.namespace}" if where.namespace else ""
                way = f"`kubectl get vmim {follower.now.name}{there} --watch` follows it"
                return f"it is not gone yet: {waits_for(follower.now)}. It is still being cancelled: {way}"

            async with within(timeout, not_yet):
                await follower.until_gone()
