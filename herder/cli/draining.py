"""`herder drain` and `herder undrain`: the taint that moves guests off a node, and what it does."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from herder.cli.asking import GUESTS_STAY, WRONG_USE, Refusal, Where, asks_a_cluster, connected
from herder.cli.completion import names_of
from herder.cli.main import cli
from herder.cli.output import output_option, show
from herder.cli.timeouts import DRAINS as PATIENCE
from herder.cli.timeouts import chosen, timeout_option, within

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachineInstanceMigration
    from herder.cli.output import Format
    from herder.cli.progress import Row
    from herder.cli.tables import Part
    from herder.kube.client import Client
    from herder.kube.resources import Key
    from herder.rules.drains import DrainPlan

MOST_NAMED = 20


@cli.command()
@click.argument("node", metavar="NODE", shell_complete=names_of("node"))
@click.option("--plan", is_flag=True, help="Only show who would go where. Nothing is changed.")
@output_option
@click.option("--no-wait", is_flag=True, help="Mark the node, and do not wait until it is empty.")
@timeout_option(PATIENCE)
@asks_a_cluster
async def drain(where: Where, node: str, plan: bool, output: Format | None, no_wait: bool, timeout: float | None) -> None:
    """Move all guests off NODE, within the limits of the cluster, and let no new ones come.

    Pods that run no guest are left alone: `kubectl drain` is for those. Ends with 0 when the node is empty, with 10 when those that
    are left cannot leave, and with 9 when the time is up; it goes on then.
    """
    if output is not None and not plan:
        raise Refusal("-o: is for --plan, which alone has an answer; without it a node is drained", WRONG_USE)
    async with connected(where) as (client, _):
        if plan:
            show(await _plan(client, node), _plan_text, output)
            return
        # Before the node is marked: a guest that is quick has left before anybody looks again, and counts all the same.
        there = await _guests(client, node) if not no_wait else []
        await _taint(client, node, wanted=True)
        if not no_wait:
            await _until_empty(client, node, there, chosen(timeout, PATIENCE))


@cli.command()
@click.argument("node", metavar="NODE", shell_complete=names_of("node"))
@asks_a_cluster
async def undrain(where: Where, node: str) -> None:
    """Let guests come to NODE again. Migrations that have not begun are taken back."""
    async with connected(where) as (client, _):
        await _taint(client, node, wanted=False)


async def _taint(client: Client, name: str, *, wanted: bool) -> None:
    from herder.kube.errors import Conflict
    from herder.kube.resources import NODES, Key
    from herder.rules.drains import with_taint, without_taint

    key = (await _cluster(client)).node_drain_taint_key
    for _ in range(10):
        node = await client.get(NODES, Key("", name))
        taints = with_taint(node, key) if wanted else without_taint(node, key)
        if taints is None:
            click.echo(f"node/{name} unchanged")
            return
        # A list is replaced as a whole: only where nobody has changed it meanwhile.
        patch: dict[str, Any] = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": taints or None},
        }
        try:
            await client.patch(NODES, Key("", name), patch)
        except Conflict:
            continue
        click.echo(f"node/{name} {'is being drained' if wanted else 'takes guests again'}")
        return
    raise Refusal(f"node {name} is changed all the time; try again")


async def _cluster(client: Client) -> Any:
    from herder.kube.errors import Forbidden, NotFound
    from herder.kube.resources import SETTINGS, Key
    from herder.rules.configuration import NAME, NAMESPACE, cluster_migration_settings

    try:
        return cluster_migration_settings(await client.find(SETTINGS, Key(NAMESPACE, NAME)))
    except (Forbidden, NotFound):
        return cluster_migration_settings(None)


async def _moving(client: Client) -> dict[Key, VirtualMachineInstanceMigration]:
    """By instance: the migration that is not over."""
    from herder.kube.resources import MIGRATIONS, Key
    from herder.rules.migration.phases import finished

    listed = (await client.list(MIGRATIONS)).items
    return {Key(one.namespace, one.spec.vmi_name): one for one in listed if not finished(one)}


async def _guests(client: Client, node: str) -> list[Key]:
    from herder.cli.drain_follower import guests_on
    from herder.kube.resources import key_of

    return [key_of(one) for one in await guests_on(client, node)]


async def _until_empty(client: Client, node: str, there: list[Key], timeout: float | None) -> None:
    from herder.cli.drain_follower import NodeFollower
    from herder.cli.progress import display

    cluster = await _cluster(client)

    def not_yet() -> str:
        said = f"{_counted(len(follower.left_over))} still on {node}: {_named(follower.left_over)}"
        return f"{said}. It goes on: `herder drain {node}` follows it again, `herder undrain {node}` ends it"

    with display() as shown:
        follower = NodeFollower(client, node, cluster, shown, there)
        async with within(timeout, not_yet):
            rows = await follower.until_settled()
    stay = [row for row in rows if row.state == "stays"]
    if stay:
        # Why was said with each of them.
        said = f"{_counted(len(stay))} on {node} and cannot leave: {', '.join(row.name for row in stay[:MOST_NAMED])}"
        more = f" and {len(stay) - MOST_NAMED} more" if len(stay) > MOST_NAMED else ""
        raise Refusal(f"{said}{more}. Stop them, or `herder undrain {node}` lets guests come again", GUESTS_STAY)
    how = Counter("moved" if row.text.startswith("moved") else "ended" for row in rows)
    counted = ", ".join(f"{count} {word}" for word, count in sorted(how.items(), reverse=True))
    click.echo(f"node/{node} is empty" + (f": {counted}" if counted else ""))


def _counted(guests: int) -> str:
    return "1 guest is" if guests == 1 else f"{guests} guests are"


def _named(rows: list[Row]) -> str:
    more = f"; and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
    return "; ".join(f"{row.name}: {row.text}" for row in rows[:MOST_NAMED]) + more


async def _plan(client: Client, name: str) -> DrainPlan:
    import msgspec

    from herder.cli.drain_follower import guests_on
    from herder.cli.placement import gather
    from herder.kube.resources import INSTANCES, NODES, Key
    from herder.rules.drains import DrainPlan, Leaving, plan_drain
    from herder.rules.placement.gather import snapshot_of

    node = await client.get(NODES, Key("", name))
    cluster = await _cluster(client)
    everything = await gather(client)
    moving = await _moving(client)
    guests = [
        Leaving(one, msgspec.json.decode(await client.get_raw(INSTANCES, key)), moving.get(key))
        for one in await guests_on(client, name)
        for key in [Key(one.namespace, one.name)]
    ]
    rows = plan_drain(node, guests, snapshot_of(everything), cluster.node_drain_taint_key, cluster.eviction_strategy)
    return DrainPlan(name, tuple(rows))


def _plan_text(plan: DrainPlan) -> list[Part]:
    from herder.cli.tables import Table

    if not plan.guests:
        return [f"there are no guests on {plan.node}"]
    rows = [(row.namespace, row.name, row.target or "stays", row.why) for row in plan.guests]
    return [Table(("NAMESPACE", "VM", "TO", "WHY"), rows)]
