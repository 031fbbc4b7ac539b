"""`herder logs`: what the guest of a machine wrote to its serial port."""

from __future__ import annotations

import sys

import click

from herder.cli.asking import Where, asks_a_cluster, connected
from herder.cli.completion import names_of
from herder.cli.main import cli


@cli.command("logs")
@click.argument("machine", metavar="VM", shell_complete=names_of("vm"))
@click.option("-f", "--follow", is_flag=True, help="Go on with what it writes, until the guest ends.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.  [default: all]")
@asks_a_cluster
async def logs(where: Where, machine: str, follow: bool, tail: int | None) -> None:
    """Print what the guest of VM wrote to its console."""
    from herder.cli.pods import CONTAINER, pod_of
    from herder.kube.resources import PODS, Key, key_of
    from herder.kube.transport import Call

    async with connected(where) as (client, namespace):
        pod = await pod_of(client, Key(namespace, machine))
        query = {"container": CONTAINER, **({"follow": "true"} if follow else {})}
        if tail is not None:
            query["tailLines"] = str(tail)
        call = Call("GET", PODS.path(*key_of(pod), "log"), query, accept="*/*", patience=None)
        async with client.transport.stream(call) as pieces:
            async for piece in pieces:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
