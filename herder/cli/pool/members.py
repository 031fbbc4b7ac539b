"""`herder pool detach|attach|remove|protect VM`: which machines a pool has, and which it may take."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from herder.cli.asking import Refusal, Where, asks_a_cluster, connected
from herder.cli.pool.group import machine_argument, pool
from herder.cli.timeouts import MACHINES as PATIENCE
from herder.cli.timeouts import chosen, timeout_option, within

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachine, VirtualMachinePool
    from herder.kube.client import Client
    from herder.rules.pools.wishes import Wish

# For a pool that is changed by others, or grows, while one of its machines is removed.
LOOKS = 60
LOOK_AGAIN = 0.5


@pool.command()
@machine_argument
@asks_a_cluster
async def detach(where: Where, machine: str) -> None:
    """Take VM out of its pool as it is, to look into it. It goes on, and the pool makes another in its place."""
    from herder.cli.pool.reading import ask
    from herder.kube.resources import MACHINES, Key
    from herder.rules.pools import wishes

    async with connected(where) as (client, namespace):
        _say(machine, await ask(client, MACHINES, Key(namespace, machine), wishes.detach))


@pool.command()
@machine_argument
@asks_a_cluster
async def attach(where: Where, machine: str) -> None:
    """Put VM back into the pool that it was detached from, by its name.

    Where the pool has made another meanwhile it has one too many, and takes one by its scaleInStrategy.
    """
    from herder.cli.pool.reading import ask, machines_of, members_of, read_machine, read_pool
    from herder.kube.resources import MACHINES, Key
    from herder.rules.pools import wishes

    async with connected(where) as (client, namespace):
        key = Key(namespace, machine)
        await read_machine(client, namespace, machine)
        name, _, number = machine.rpartition("-")
        if not name or not number.isdigit():
            raise Refusal(f"VirtualMachine {machine} is not named POOL-<n>, and a pool takes no other")
        found, _ = await read_pool(client, namespace, name)
        members = members_of(found, *await machines_of(client, namespace))
        size = sum(not one.deleting and not one.standby for one in members)
        _say(machine, await ask(client, MACHINES, key, lambda now: wishes.attach(now, found, size)))


@pool.command()
@machine_argument
@click.option("--undo", is_flag=True, help="Let it be taken again. Also takes back a removal that has not begun.")
@asks_a_cluster
async def protect(where: Where, machine: str, undo: bool) -> None:
    """Keep VM from being taken when its pool is scaled in. What is beyond replicas then shows as surplus."""
    from herder.cli.pool.reading import ask
    from herder.kube.resources import MACHINES, Key
    from herder.rules.pools import wishes

    async with connected(where) as (client, namespace):
        key = Key(namespace, machine)
        _say(machine, await ask(client, MACHINES, key, lambda now: wishes.protect(now, undo=undo)))


@pool.command()
@machine_argument
@click.option("--wait", is_flag=True, help="Follow it until it is gone.")
@timeout_option(PATIENCE)
@asks_a_cluster
async def remove(where: Where, machine: str, wait: bool, timeout: float | None) -> None:
    """Take VM, and no other, from its pool, which then has one machine less.

    Its volumes go with it, unless the pool's statePreservation keeps them. Whatever others do to the pool at the same time, nobody
    else is taken for it.
    """
    from herder.cli.pool.reading import machines_of, members_of, pool_of_machine, told
    from herder.kube.resources import MACHINES, Key
    from herder.rules.pools import wishes
    from herder.rules.pools.preservation import keeps_volumes

    async with connected(where) as (client, namespace):
        found, of, _ = await pool_of_machine(client, namespace, machine)
        members = members_of(of, *await machines_of(client, namespace))
        wish = told(lambda: wishes.remove(found, of, members))
        await _try_to_scale(client, of)
        if wish.patch is not None:
            # The mark first: with fewer replicas and no mark another machine would go.
            await client.patch(MACHINES, Key(namespace, machine), wish.patch)
        replicas = await _lower(client, of, found)
        kept = "are kept" if keeps_volumes(of) else "go with it"
        fewer = f"replicas {replicas[0]} → {replicas[1]}" if replicas is not None else "fewer replicas are wanted already"
        click.echo(f"virtualmachine.kubevirt.io/{machine} is removed from pool {of.name} ({fewer}); its volumes {kept}")
        if wait or timeout is not None:
            await _until_gone(client, found, chosen(timeout, PATIENCE))


async def _try_to_scale(client: Client, of: VirtualMachinePool) -> None:
    """Without doing it: who may not lower replicas is told before anything is marked."""
    from herder.kube.resources import POOLS, key_of

    same = {"metadata": {"uid": of.uid}, "spec": {"replicas": of.spec.replicas}}
    await client.patch_raw(POOLS, key_of(of), same, dry_run=True)


async def _lower(client: Client, of: VirtualMachinePool, machine: VirtualMachine) -> tuple[int, int] | None:
    """replicas before, and with which it goes; None where there is nothing to lower. Each look is at the pool and its machines as
    they are then, and counts only if the pool has not been changed since."""
    from herder.cli.pool.reading import machines_of, members_of
    from herder.kube.errors import Conflict
    from herder.kube.resources import POOLS, key_of
    from herder.rules.pools import wishes

    for _ in range(LOOKS):
        now = await client.get(POOLS, key_of(of))
        members = members_of(now, *await machines_of(client, of.namespace))
        if all(one.uid != machine.uid or one.deleting for one in members):
            return None
        if wishes.is_full(now, members):
            replicas = wishes.lowered(now, members)
            if replicas is None:
                return None
            metadata = {"uid": of.uid, "resourceVersion": now.metadata.resource_version}
            try:
                await client.patch(POOLS, key_of(of), {"metadata": metadata, "spec": {"replicas": replicas}})
                return now.spec.replicas, replicas
            except Conflict:
                continue
        await asyncio.sleep(LOOK_AGAIN)
    raise Refusal(
        f"pool {of.name} grows or is changed all the time, so its replicas were not lowered. VirtualMachine {machine.name} is"
        f" marked, and goes with the next scale-in; `herder pool protect --undo {machine.name}` takes the mark away"
    )


async def _until_gone(client: Client, machine: VirtualMachine, timeout: float | None) -> None:
    from herder.cli.following import until
    from herder.cli.progress import Row, display
    from herder.kube.resources import MACHINES, key_of
    from herder.rules.machines.waiting import told

    now = machine

    def is_gone(seen: VirtualMachine | None) -> bool:
        nonlocal now
        if seen is None or seen.uid != machine.uid:
            shown.show([Row("", "done", f"VirtualMachine {machine.name} is gone")])
            return True
        now = seen
        shown.show([Row("", "waits", told(seen))])
        return False

    with display() as shown:
        async with within(timeout, lambda: f"it is not gone yet: {told(now)}. It goes on"):
            await until(client, MACHINES, key_of(machine), is_gone)


def _say(machine: str, wish: Wish) -> None:
    click.echo(f"virtualmachine.kubevirt.io/{machine} {wish.said}")
