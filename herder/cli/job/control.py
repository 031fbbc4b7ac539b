"""`herder job pause|resume|abort JOB`: each a plain patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from herder.cli.asking import Where, asks_a_cluster, connected
from herder.cli.job.group import RESOURCE, job, job_argument
from herder.cli.timeouts import JOBS as PATIENCE
from herder.cli.timeouts import chosen, timeout_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from herder.api.core import Pod
    from herder.api.kinds import PodMigrationJob
    from herder.kube.client import Client
    from herder.rules.pools.wishes import Wish


@job.command()
@job_argument
@asks_a_cluster
async def pause(where: Where, name: str) -> None:
    """Hold JOB: it waits without using up a limit, and its time does not run. One that runs and has not evicted its pod gives its
    room back; afterwards a job cannot be paused."""
    from herder.rules.jobs import wishes

    async with connected(where) as (client, _):
        await ask(client, name, wishes.pause)


@job.command()
@job_argument
@click.option("--wait", is_flag=True, help="Follow it until it is over.")
@timeout_option(PATIENCE)
@asks_a_cluster
async def resume(where: Where, name: str, wait: bool, timeout: float | None) -> None:
    """Let JOB go on, as soon as no limit holds it."""
    from herder.cli.job.follower import follow
    from herder.rules.jobs import wishes

    async with connected(where) as (client, _):
        found = await ask(client, name, wishes.resume)
        if wait or timeout is not None:
            await follow(client, [found], chosen(timeout, PATIENCE))


@job.command()
@job_argument
@asks_a_cluster
async def abort(where: Where, name: str) -> None:
    """End JOB. Before its pod was evicted, the pod stays and the reserved room is given back; afterwards the replacement keeps its
    room, and only the job ends. Its record stays for a while: `herder job status` says how it ended."""
    from herder.rules.jobs import wishes

    async with connected(where) as (client, _):
        await ask(client, name, wishes.abort)


async def ask(client: Client, name: str, decide: Callable[[PodMigrationJob, Pod | None], Wish]) -> PodMigrationJob:
    """Patches the job as `decide` says of it, and says what comes of it."""
    from herder.cli.job.reading import pod_named_by, read_job
    from herder.cli.pool.reading import told
    from herder.kube.resources import JOBS, key_of
    from herder.rules.jobs.shown import meant_pod

    found = await read_job(client, name)
    pod = meant_pod(found, await pod_named_by(client, found))
    wish = told(lambda: decide(found, pod))
    if wish.patch is not None:
        found = await client.patch(JOBS, key_of(found), wish.patch)
    click.echo(f"{RESOURCE}/{name} {wish.said}")
    return found
