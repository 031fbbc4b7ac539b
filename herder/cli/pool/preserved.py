"""`herder pool preserved POOL`: what is kept of machines that were taken, and how to let it go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from herder.cli.asking import WRONG_USE, Refusal, Where, asks_a_cluster, connected
from herder.cli.completion import at_once
from herder.cli.output import output_option, show
from herder.cli.pool.group import pool, pool_argument

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachinePool
    from herder.cli.output import Format
    from herder.cli.tables import Part
    from herder.kube.client import Client
    from herder.rules.pools.preservation import Kept, PreservedStates

MOST_NAMED = 10


def _kept_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Of machines that are gone: nobody else could list them."""
    # Behind an option without a value the arguments have not been read yet.
    given = {**context.params, "name": context.params.get("name") or next(iter(context.args), "")}
    return [name for name in at_once(lambda: asyncio.run(_listed(given))) if name.startswith(incomplete)]


async def _listed(given: dict[str, Any]) -> list[str]:
    async with connected(Where(given.get("kubeconfig"), given.get("context"), given.get("namespace"))) as (client, namespace):
        return list((await _kept(client, namespace, given["name"]))[1])


async def _kept(client: Client, namespace: str, name: str) -> tuple[VirtualMachinePool, dict[str, list[Kept]]]:
    from herder.cli.pool.reading import read_pool
    from herder.kube.client import Selection
    from herder.kube.resources import CLAIMS, DATA_VOLUMES
    from herder.rules.pools.preservation import kept_volumes

    found, _ = await read_pool(client, namespace, name)
    here = Selection(namespace)
    volumes, claims = await asyncio.gather(client.list(DATA_VOLUMES, here), client.list(CLAIMS, here))
    return found, kept_volumes(found, (*volumes.items, *claims.items))


@pool.command()
@pool_argument
@click.option(
    "--delete", "machine", metavar="VM", help="Delete what is kept of this machine, for good.", shell_complete=_kept_names
)
@output_option
@asks_a_cluster
async def preserved(where: Where, name: str, machine: str | None, output: Format | None) -> None:
    """Show which volumes, and whose memory, POOL keeps of machines that were taken, until one of that name comes back."""
    from herder.rules.pools.preservation import preserved_report

    if machine is not None and output is not None:
        raise Refusal("-o: is for the list; with --delete there is nothing to show", WRONG_USE)
    async with connected(where) as (client, namespace):
        found, kept = await _kept(client, namespace, name)
        if machine is None:
            show(preserved_report(found, kept), _text, output)
            return
        if machine not in kept:
            raise Refusal(_nothing_kept(name, machine, list(kept)))
        await _delete(client, machine, kept[machine])


def _nothing_kept(name: str, machine: str, known: list[str]) -> str:
    there = f"there is: {', '.join(known[:MOST_NAMED])}" if known else "nothing is kept at all"
    return f"--delete: pool {name} keeps nothing of {machine!r}; {there}"


async def _delete(client: Client, machine: str, volumes: list[Kept]) -> None:
    """Each as it was looked at: a machine that has come back meanwhile has its volumes again."""
    from herder.api.core import PersistentVolumeClaim
    from herder.kube.errors import Conflict, NotFound
    from herder.kube.resources import CLAIMS, DATA_VOLUMES, key_of

    # Memory first: it is of no use without the disks that it knows.
    for volume in sorted(volumes, key=lambda one: not isinstance(one, PersistentVolumeClaim)):
        memory = isinstance(volume, PersistentVolumeClaim)
        resource, called = (CLAIMS, "persistentvolumeclaim") if memory else (DATA_VOLUMES, "datavolume.cdi.kubevirt.io")
        try:
            version = volume.metadata.resource_version or ""
            await client.delete(resource, key_of(volume), uid=volume.uid, resource_version=version)
        except NotFound:
            continue
        except Conflict:
            raise Refusal(f"{machine} is coming back, or its volume {volume.name} was changed meanwhile; look again") from None
        click.echo(f"{called}/{volume.name} deleted")


def _text(found: PreservedStates) -> list[Part]:
    from herder.cli.tables import Table, age

    if not found.machines:
        return [f"pool {found.name} keeps nothing"]
    rows = [
        (row.name, ", ".join(row.volumes), "yes" if row.memory else "no", row.ready_revision, age(row.created))
        for row in found.machines
    ]
    return [Table(("VM", "VOLUMES", "MEMORY", "WAS READY ON", "AGE OF ITS VOLUMES"), rows)]
