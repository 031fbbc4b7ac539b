"""`herder evacuate`: files a job for each pod that is named, picked or on a node; --plan only says what would come of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from herder.api.problems import printable
from herder.cli.asking import GUESTS_STAY, WRONG_USE, Refusal, Where, asks_a_cluster, connected
from herder.cli.completion import names_of
from herder.cli.job.group import RESOURCE
from herder.cli.main import cli
from herder.cli.output import output_option, show
from herder.cli.timeouts import JOBS as PATIENCE
from herder.cli.timeouts import Length, chosen, timeout_option

if TYPE_CHECKING:
    from herder.api.kinds import PodMigrationJob
    from herder.api.kinds.pod_migration_job import JobMode
    from herder.cli.job.selection import Selected
    from herder.cli.output import Format
    from herder.cli.tables import Part
    from herder.kube.client import Client
    from herder.rules.jobs.evacuation import EvacuationPlan, EvacuationRow, Filing, StaysRow, Wanted

MODES = ("ReservationFirst", "EvictDirectly")
MOST_NAMED = 10
BEGINS, WAITS = "at once", "waits"


@cli.command()
@click.argument("pods", metavar="[POD]...", nargs=-1, shell_complete=names_of("pod", "vm"))
@click.option("-l", "--selector", metavar="EXPR", help="All pods with these labels, as for kubectl -l.")
@click.option(
    "--node",
    metavar="NODE",
    help="All pods of this node; of all namespaces, unless -n says which.",
    shell_complete=names_of("node"),
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="Whether room is reserved before a pod goes, or it just goes.  [default: as configured, ReservationFirst]",
)
@click.option(
    "--ttl",
    type=Length(),
    metavar="T",
    help="Time that each job has once it runs, such as 90s or 10m; 0 for ever.  [default: as configured, 5m]",
)
@click.option("--plan", is_flag=True, help="Only show the order, the nodes, and what would hold whom. Nothing is changed.")
@output_option
@click.option("--wait", is_flag=True, help="Follow the jobs until all are over.")
@timeout_option(PATIENCE)
@asks_a_cluster
async def evacuate(
    where: Where,
    pods: tuple[str, ...],
    selector: str | None,
    node: str | None,
    mode: JobMode | None,
    ttl: float | None,
    plan: bool,
    output: Format | None,
    wait: bool,
    timeout: float | None,
) -> None:
    """Have pods moved to other nodes, safely: a PodMigrationJob for each, within the limits and budgets of the cluster.

    POD is a name, pod/NAME or vm/NAME; a virtual machine is live-migrated. Pods that cannot be moved are listed with the reason,
    and stay. Ends with 0 where a job was filed for each pod (with --wait: and moved it), with 8 where one was refused or failed,
    and with 10 where pods stay that belong to no DaemonSet. The node is not cordoned: `kubectl cordon` keeps others from coming.
    """
    from herder.cli.job.selection import select
    from herder.rules.jobs.evacuation import Wanted

    if output is not None and not plan:
        raise Refusal("-o: is for --plan, which alone has an answer; without it jobs are filed", WRONG_USE)
    if plan and (wait or timeout is not None):
        raise Refusal("--plan changes nothing, so there is nothing to wait for; leave out --wait and --timeout", WRONG_USE)
    wanted = Wanted(mode, written_time(ttl) if ttl is not None else None)
    async with connected(where) as (client, namespace):
        selected = await select(client, pods, selector or "", node or "", namespace if not node else where.namespace or "")
        planned, filings = await planned_evacuation(client, selected, wanted)
        if plan:
            show(planned, plan_text, output)
            return
        await _carry_out(
            client, planned, filings, named=bool(pods), wait=wait or timeout is not None, timeout=chosen(timeout, PATIENCE)
        )


async def planned_evacuation(client: Client, selected: list[Selected], wanted: Wanted) -> tuple[EvacuationPlan, list[Filing]]:
    from herder.api.world import RealWorld
    from herder.cli.job.cluster import read_cluster
    from herder.cli.job.reading import read_jobs
    from herder.cli.job.selection import read_places
    from herder.rules.jobs.evacuation import file_jobs, plan_evacuation

    jobs = await read_jobs(client)
    pods = [one.pod for one in selected]
    seen = await read_cluster(client, jobs, pods)
    filings = file_jobs(pods, {one.name for one in jobs}, wanted, RealWorld().now())
    places, unknown = await read_places(client, selected, seen)
    return plan_evacuation(
        filings, seen.cluster, seen.config, places, limits_known=seen.limits_known, unknown=(*seen.unknown, *unknown)
    )


def written_time(seconds: float) -> str:
    """As the API takes it: never with an exponent."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def plan_text(plan: EvacuationPlan) -> list[Part]:
    from herder.cli.tables import Table

    rows = [
        (
            str(row.order),
            f"{row.namespace}/{row.pod}",
            row.source_node,
            row.target_node or ("(no room)" if row.no_room else ""),
            WAITS if row.waits else BEGINS if plan.limits_known else "",
            "; ".join(part for part in (f"{row.waits}: {row.why}" if row.waits else "", row.no_room) if part),
        )
        for row in plan.jobs
    ]
    table: list[Part] = [Table(("", "POD", "FROM", "TO", "BEGINS", "WHY"), rows)] if rows else ["No job would be filed."]
    stay = [(f"{row.namespace}/{row.pod}", row.node, row.why) for row in plan.stay]
    stays: list[Part] = ["", "These stay:", Table(("POD", "NODE", "WHY"), stay)] if stay else []
    return [*table, *stays, *plan.unknown]


async def _carry_out(
    client: Client, plan: EvacuationPlan, filings: list[Filing], *, named: bool, wait: bool, timeout: float | None
) -> None:
    from herder.cli.job.follower import follow

    made, refused = await file_all(client, plan, filings)
    stay = [row for row in plan.stay if not row.expected or named]
    if stay and named and not made and not refused:
        raise Refusal(_not_filed(stay))
    for row in plan.stay:
        click.echo(printable(f"pod {row.namespace}/{row.pod} stays: {row.why}"), err=True)
    if wait and made:
        await follow(client, made, timeout)
    if refused:
        raise Refusal("; ".join(refused[:MOST_NAMED]) + (f"; and {len(refused) - MOST_NAMED} more" if refused[MOST_NAMED:] else ""))
    if stay:
        raise Refusal(_left(stay), GUESTS_STAY)
    if not made:
        click.echo("there is nothing to move")


async def file_all(client: Client, plan: EvacuationPlan, filings: list[Filing]) -> tuple[list[PodMigrationJob], list[str]]:
    """In the order of the plan. And what the API server said of those that it refused."""
    from herder.kube.errors import AlreadyExists, Forbidden, Invalid
    from herder.kube.resources import JOBS

    made: list[PodMigrationJob] = []
    refused: list[str] = []
    for row, filing in zip(plan.jobs, filings, strict=True):
        try:
            job = await client.create(JOBS, filing.document)
        except AlreadyExists:
            refused.append(f"pod {row.namespace}/{row.pod}: job {row.job} was filed by somebody else meanwhile")
        except (Forbidden, Invalid) as error:
            refused.append(f"pod {row.namespace}/{row.pod}: {error}")
        else:
            made.append(job)
            # It may quote what somebody else has written.
            click.echo(printable(f"{RESOURCE}/{job.name} created: {_outlook(row)}"))
    return made, refused


def _outlook(row: EvacuationRow) -> str:
    """What was planned for it: things may have changed since, and then so does what becomes of it."""
    to = f" to {row.target_node}" if row.target_node else ""
    leaves = f" from {row.source_node}" if row.source_node else ""
    waits = f"; it waits: {row.why}" if row.waits else f"; there is no room yet: {row.no_room}" if row.no_room else ""
    return f"pod {row.namespace}/{row.pod}{leaves}{to}{waits}"


def _not_filed(stay: list[StaysRow]) -> str:
    return "no job was filed: " + "; ".join(f"pod {row.namespace}/{row.pod}: {row.why}" for row in stay[:MOST_NAMED])


def _left(stay: list[StaysRow]) -> str:
    named = ", ".join(f"{row.namespace}/{row.pod}" for row in stay[:MOST_NAMED])
    more = f" and {len(stay) - MOST_NAMED} more" if len(stay) > MOST_NAMED else ""
    return f"{'1 pod stays' if len(stay) == 1 else f'{len(stay)} pods stay'}: {named}{more}"
