"""`herder console`: the guest's serial port in this terminal."""

from __future__ import annotations

import sys

import click

from herder.cli.asking import Refusal, Where, asks_a_cluster, connected
from herder.cli.completion import names_of
from herder.cli.main import cli


@cli.command("console")
@click.argument("machine", metavar="VM", shell_complete=names_of("vm"))
@asks_a_cluster
async def console(where: Where, machine: str) -> None:
    """Open the serial console of VM. Ctrl-] leaves it; the machine runs on.

    Where the input is no terminal, its end does not end the console: it goes on until the guest ends, or a Ctrl-] was read.
    """
    from herder.cli.pods import CONTAINER, pod_of
    from herder.cli.terminal import PROTOCOL, Talk, terminal
    from herder.kube.resources import PODS, Key, key_of

    async with connected(where) as (client, namespace):
        pod = await pod_of(client, Key(namespace, machine))
        if pod.status.phase != "Running":
            raise Refusal(f"the guest of {machine} does not run (its pod {pod.name} is {pod.status.phase}), so it has no console")
        wanted = [("container", CONTAINER), ("stdin", "true"), ("stdout", "true"), ("stderr", "false"), ("tty", "true")]
        async with client.transport.websocket(PODS.path(*key_of(pod), "attach"), wanted, PROTOCOL) as socket:
            with terminal() as raw:
                # Only now: a key that is typed earlier would not get to the guest.
                if sys.stdin.isatty():
                    click.echo(f"Connected to {machine}. Ctrl-] leaves; the machine runs on.\r", err=True)
                said = await Talk(socket, raw).run()
        if said:
            raise Refusal(f"the console of {machine} ended: {said}")
