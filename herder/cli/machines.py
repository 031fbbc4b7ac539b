"""`herder start|stop|restart|pause|unpause`: each a plain patch, and with --wait a look at what becomes of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from herder.cli.asking import Refusal, Where, asks_a_cluster, connected
from herder.cli.main import cli

if TYPE_CHECKING:
    from herder.rules.machines.wishes import Verb

_HELP: dict[Verb, str] = {
    "start": "Start the virtual machine VM, and keep it running where its run strategy says so.",
    "stop": "Shut down the virtual machine VM, and keep it off.",
    "restart": "End the instance of the virtual machine VM, and start another.",
    "pause": "Hold the guest of VM where it is; it keeps its memory.",
    "unpause": "Let the guest of VM go on.",
}
_DONE: dict[Verb, str] = {
    "start": "is asked to start",
    "stop": "is asked to stop",
    "restart": "is asked to restart",
    "pause": "is asked to pause",
    "unpause": "is asked to go on",
}


def _add(verb: Verb) -> None:
    async def command(where: Where, machine: str, wait: bool, timeout: float | None) -> None:
        await ask(verb, where, machine, wait or timeout is not None, timeout)

    command.__name__ = verb
    command.__doc__ = _HELP[verb]
    made = asks_a_cluster(command)
    made = click.option("--timeout", type=click.FloatRange(min=0), metavar="S", help="Wait no longer than so many seconds.")(made)
    made = click.option("--wait", is_flag=True, help="Follow it until it is so, or cannot be.")(made)
    cli.command(verb)(click.argument("machine", metavar="VM")(made))


async def ask(verb: Verb, where: Where, name: str, wait: bool, timeout: float | None) -> None:
    from herder.api.world import RealWorld
    from herder.cli.following import follow
    from herder.kube.resources import INSTANCES, MACHINES, Key
    from herder.rules.machines.waiting import Asked
    from herder.rules.machines.wishes import Impossible, wish

    async with connected(where) as (client, namespace):
        key = Key(namespace, name)
        machine = await client.get(MACHINES, key)
        instance = await client.find(INSTANCES, key)
        try:
            wished = wish(verb, machine, instance, RealWorld().uid())
        except Impossible as sentence:
            raise Refusal(str(sentence)) from None
        if wished.patch is None:
            click.echo(f"virtualmachine.kubevirt.io/{name} unchanged")
        elif wished.of_instance:
            await client.patch(INSTANCES, key, wished.patch)
        else:
            machine = await client.patch(MACHINES, key, wished.patch)
        if wished.patch is not None:
            click.echo(f"virtualmachine.kubevirt.io/{name} {_DONE[verb]}")
        if wait:
            try:
                async with asyncio.timeout(timeout):
                    await follow(client, Asked(verb, machine, instance), click.echo)
            except TimeoutError:
                raise Refusal(f"after {timeout:g} s it is not so yet; `kubectl describe vm {name}` says more") from None


for _verb in _HELP:
    _add(_verb)
