"""`herder start|stop|restart|pause|unpause|suspend|resume`: each a plain patch, and with --wait a look at what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from herder.cli.asking import Refusal, Where, asks_a_cluster, connected
from herder.cli.completion import names_of
from herder.cli.main import cli
from herder.cli.timeouts import MACHINES as PATIENCE
from herder.cli.timeouts import chosen, timeout_option, within

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachine, VirtualMachineInstance
    from herder.kube.client import Client
    from herder.rules.machines.wishes import Verb

_HELP: dict[Verb, str] = {
    "start": "Start the virtual machine VM, and keep it running where its run strategy says so.",
    "stop": "Shut down the virtual machine VM, and keep it off.",
    "restart": "End the instance of the virtual machine VM, and start another.",
    "pause": "Hold the guest of VM where it is; it keeps its memory.",
    "unpause": "Let the guest of VM go on.",
    "suspend": "Save the memory of VM into a claim, and free its node; `herder resume` lets it go on from there.",
    "resume": "Let the suspended virtual machine VM go on from its memory, on any node that fits.",
}
_DONE: dict[Verb, str] = {
    "start": "is asked to start",
    "stop": "is asked to stop",
    "restart": "is asked to restart",
    "pause": "is asked to pause",
    "unpause": "is asked to go on",
    "suspend": "is asked to be suspended",
    "resume": "is asked to go on from its memory",
}
# What takes it back.
_BACK: dict[Verb, str] = {
    "start": "stop",
    "stop": "start",
    "restart": "stop",
    "pause": "unpause",
    "unpause": "pause",
    "suspend": "resume",
    "resume": "suspend",
}


def _add(verb: Verb) -> None:
    async def command(where: Where, machine: str, wait: bool, timeout: float | None) -> None:
        await ask(verb, where, machine, wait or timeout is not None, chosen(timeout, PATIENCE))

    command.__name__ = verb
    command.__doc__ = _HELP[verb]
    made = asks_a_cluster(command)
    made = timeout_option(PATIENCE)(made)
    made = click.option("--wait", is_flag=True, help="Follow it until it is so, or cannot be.")(made)
    cli.command(verb)(click.argument("machine", metavar="VM", shell_complete=names_of("vm"))(made))


async def ask(verb: Verb, where: Where, name: str, wait: bool, timeout: float | None) -> None:
    from herder.api.world import RealWorld
    from herder.kube.resources import INSTANCES, MACHINES, Key
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
            await _wait(client, verb, machine, instance, where, timeout)


async def _wait(
    client: Client,
    verb: Verb,
    machine: VirtualMachine,
    instance: VirtualMachineInstance | None,
    where: Where,
    timeout: float | None,
) -> None:
    from herder.cli.following import MachineFollower
    from herder.cli.progress import display
    from herder.rules.machines.waiting import Asked, told

    def not_yet() -> str:
        there = f" -n {where.namespace}" if where.namespace else ""
        ways = (
            f"`kubectl get vm {machine.name}{there} --watch` follows it, `herder {_BACK[verb]} {machine.name}{there}` takes it back"
        )
        return f"it is not so yet: {told(follower.now)}. It goes on: {ways}"

    with display() as shown:
        follower = MachineFollower(client, Asked(verb, machine, instance), shown)
        async with within(timeout, not_yet):
            await follower.run()


for _verb in _HELP:
    _add(_verb)
