"""`herder drain` and `herder undrain`: the taint that moves guests off a node, and what it does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from herder.cli.asking import Refusal, Where, asks_a_cluster, connected
from herder.cli.main import cli

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
    from herder.kube.client import Client
    from herder.kube.resources import Key

LOOK_EVERY = 1.0


@cli.command()
@click.argument("node", metavar="NODE")
@click.option("--plan", is_flag=True, help="Only show who would go where. Nothing is changed.")
@click.option("--no-wait", is_flag=True, help="Mark the node, and do not wait until it is empty.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="S", help="Wait no longer than so many seconds.")
@asks_a_cluster
async def drain(where: Where, node: str, plan: bool, no_wait: bool, timeout: float | None) -> None:
    """Move all guests off NODE, within the limits of the cluster, and let no new ones come.

    Pods that run no guest are left alone: `kubectl drain` is for those.
    """
    async with connected(where) as (client, _):
        if plan:
            await _show_plan(client, node)
            return
        await _taint(client, node, wanted=True)
        if not no_wait:
            try:
                async with asyncio.timeout(timeout):
                    await _until_empty(client, node)
            except TimeoutError:
                raise Refusal(
                    f"after {timeout:g} s guests are still on {node}; it goes on. `herder undrain {node}` ends it"
                ) from None


@cli.command()
@click.argument("node", metavar="NODE")
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


async def _guests_on(client: Client, node: str) -> list[VirtualMachineInstance]:
    from herder.api import labels
    from herder.kube.client import Selection
    from herder.kube.resources import INSTANCES

    listed = await client.list(INSTANCES, Selection(labels=f"{labels.NODE_NAME}={node}"))
    return [
        one for one in listed.items if one.status is not None and one.status.phase == "Running" and one.status.node_name == node
    ]


async def _moving(client: Client) -> dict[Key, VirtualMachineInstanceMigration]:
    """By instance: the migration that is not over."""
    from herder.kube.resources import MIGRATIONS, Key
    from herder.rules.migration.phases import finished

    listed = (await client.list(MIGRATIONS)).items
    return {Key(one.namespace, one.spec.vmi_name): one for one in listed if not finished(one)}


async def _until_empty(client: Client, node: str) -> None:
    from herder.rules.evictions import strategy_of, why_not_movable

    cluster = await _cluster(client)
    left = -1
    while True:
        there = await _guests_on(client, node)
        stuck = [one for one in there if why_not_movable(one) or strategy_of(one, cluster.eviction_strategy) == "External"]
        if len(there) != left:
            left = len(there)
            click.echo(f"{left} guests on {node}" if left != 1 else f"1 guest on {node}")
        if there and len(stuck) == len(there):
            listed = "; ".join(f"{one.namespace}/{one.name}: {why_not_movable(one) or 'External'}" for one in stuck)
            raise Refusal(f"these cannot be moved off {node}: {listed}")
        if not there:
            return
        await asyncio.sleep(LOOK_EVERY)


async def _show_plan(client: Client, name: str) -> None:
    import msgspec

    from herder.cli.placement import gather
    from herder.cli.tables import table
    from herder.kube.resources import INSTANCES, NODES, Key
    from herder.rules.drains import Leaving, plan_drain
    from herder.rules.placement.gather import snapshot_of

    node = await client.get(NODES, Key("", name))
    cluster = await _cluster(client)
    everything = await gather(client)
    moving = await _moving(client)
    guests = [
        Leaving(one, msgspec.json.decode(await client.get_raw(INSTANCES, key)), moving.get(key))
        for one in await _guests_on(client, name)
        for key in [Key(one.namespace, one.name)]
    ]
    rows = plan_drain(node, guests, snapshot_of(everything), cluster.node_drain_taint_key, cluster.eviction_strategy)
    if not rows:
        click.echo(f"there are no guests on {name}")
        return
    cells = [(row.namespace, row.name, row.target or "stays", row.why) for row in rows]
    for line in table([("NAMESPACE", "VM", "TO", "WHY"), *cells]):
        click.echo(line)
