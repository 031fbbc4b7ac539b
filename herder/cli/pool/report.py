"""`herder pool status POOL`: the pool, and each of its machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from herder.cli.asking import WRONG_USE, Refusal, Where, asks_a_cluster, connected
from herder.cli.output import output_option, show
from herder.cli.pool.group import pool, pool_argument

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachinePool
    from herder.cli.output import Format
    from herder.cli.tables import Part
    from herder.kube.client import Client
    from herder.rules.pools.explain import PoolReport

MOST_NAMED = 10


@pool.command()
@pool_argument
@click.option("-w", "--watch", is_flag=True, help="Go on, and show what changes, until interrupted.")
@output_option
@asks_a_cluster
async def status(where: Where, name: str, watch: bool, output: Format | None) -> None:
    """Show how POOL is, how far its rollout is, and for each machine its revision, whether it is ready, and if not, why."""
    from herder.cli.pool.reading import machines_of, members_of, read_autoscalers, read_pool
    from herder.rules.pools.explain import pool_report

    if watch and output is not None:
        raise Refusal("-o: is for one answer; --watch shows how it changes", WRONG_USE)
    async with connected(where) as (client, namespace):
        found, _ = await read_pool(client, namespace, name)
        if watch:
            await _watch(client, found)
            return
        machines, instances = await machines_of(client, namespace)
        by_name = {one.name: one for one in machines}
        autoscalers = await read_autoscalers(client, namespace)
        show(pool_report(found, by_name, members_of(found, machines, instances), autoscalers), _text, output)


async def _watch(client: Client, found: VirtualMachinePool) -> None:
    from herder.cli.pool.follower import PoolFollower
    from herder.cli.progress import display

    with display() as shown:
        await PoolFollower(client, found, shown).run()


def _text(report: PoolReport) -> list[Part]:
    from herder.cli.tables import Table, age
    from herder.rules.pools.status import counted

    counts = f"{report.current} of {counted(report.desired, 'machine')}, {report.ready} ready, {report.updated} updated"
    more = [
        f"{count} {word}"
        for count, word in (
            (report.unavailable, "not available"),
            (report.surplus, "beyond replicas"),
            (report.standby, f"on standby ({report.ready_standby} asleep)"),
            (report.suspended, "suspended"),
            (report.preserved, "preserved"),
        )
        if count
    ]
    parts: list[Part] = [f"pool {report.name}: {', '.join([counts, *more])}", f"rollout, {report.percent}%: {report.message}"]
    parts += [*report.problems, *report.autoscalers]
    if report.detached:
        left_out = len(report.detached) - MOST_NAMED
        more_of_them = f" and {left_out} more" if left_out > 0 else ""
        parts.append(f"detached: {', '.join(report.detached[:MOST_NAMED])}{more_of_them}")
    rows = [(row.name, row.revision, "yes" if row.ready else "no", row.node, age(row.created), row.why) for row in report.machines]
    return [*parts, Table(("VM", "REVISION", "READY", "NODE", "AGE", "WHY"), rows)] if rows else parts
