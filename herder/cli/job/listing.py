"""`herder job list`: all jobs, or those of a namespace or a phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from herder.cli.asking import Where, asks_a_cluster, connected
from herder.cli.job.group import job
from herder.cli.output import output_option, show

if TYPE_CHECKING:
    from herder.cli.output import Format
    from herder.cli.tables import Part
    from herder.kube.client import Client
    from herder.rules.jobs.shown import JobList

PHASES = ("Pending", "Running", "Succeed", "Failed", "Aborted")


@job.command("list")
@click.option("--phase", type=click.Choice(PHASES), help="Only those in this phase.  [default: all]")
@output_option
@asks_a_cluster
async def list_jobs(where: Where, phase: str | None, output: Format | None) -> None:
    """List jobs: their phase, the pod, which node it leaves, where room is held for it or its replacement is, and why they wait.

    Jobs are of no namespace: all are listed, unless -n names that of their pods.
    """
    async with connected(where) as (client, _):
        show(await listed(client, where.namespace or "", phase or ""), list_text, output)


async def listed(client: Client, namespace: str, phase: str) -> JobList:
    from herder.cli.job.reading import nodes_of_pods, read_jobs, read_reservations
    from herder.rules.jobs.execution.status import phase_of, status_of
    from herder.rules.jobs.shown import JobList, job_row

    found = [one for one in await read_jobs(client) if namespace in ("", one.spec.pod_ref.namespace)]
    meant = [one for one in found if phase in ("", phase_of(one))]
    unplaced = any(phase_of(one) == "Pending" and not status_of(one).source_node for one in meant)
    nodes = await nodes_of_pods(client, namespace) if unplaced else {}
    reservations = await read_reservations(client) if meant else {}
    return JobList(tuple(job_row(one, nodes, reservations) for one in meant))


def list_text(found: JobList) -> list[Part]:
    from herder.cli.tables import Table, age

    if not found.jobs:
        return ["there are no such jobs; `herder evacuate` makes one for a pod"]
    rows = [
        (
            row.name,
            row.phase,
            f"{row.namespace}/{row.pod}",
            row.source_node,
            row.target_node,
            row.reason,
            age(row.created),
        )
        for row in found.jobs
    ]
    return [Table(("NAME", "PHASE", "POD", "FROM", "TO", "REASON", "AGE"), rows)]
