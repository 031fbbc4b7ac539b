"""`herder migrate` and `herder cancel`: a migration is made or deleted, and with --wait it is followed."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from herder.cli.asking import WRONG_USE, Refusal, Where, asks_a_cluster, connected
from herder.cli.main import cli

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachineInstanceMigration
    from herder.api.kinds.migration_state import MigrationProgress
    from herder.kube.client import Client
    from herder.kube.resources import Key

Document = dict[str, Any]
PRIORITIES = ("system-critical", "user-triggered", "system-maintenance")


@cli.command()
@click.argument("machine", metavar="VM")
@click.option("--to", metavar="NODE", help="Only to this node.  [default: wherever the scheduler finds best]")
@click.option("--selector", metavar="EXPR", help="Only to nodes with these labels, as for kubectl -l.")
@click.option("--priority", type=click.Choice(PRIORITIES), default="user-triggered", show_default=True, help="Who goes first.")
@click.option("--wait", is_flag=True, help="Follow it until it is over.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="S", help="Wait no longer than so many seconds.")
@asks_a_cluster
async def migrate(
    where: Where, machine: str, to: str | None, selector: str | None, priority: str, wait: bool, timeout: float | None
) -> None:
    """Move the running guest of VM to another node, without stopping it."""
    from herder.kube.resources import MIGRATIONS, Key

    if to and selector:
        raise Refusal("--to and --selector exclude each other: a node, or labels of nodes", WRONG_USE)
    spec: Document = {"vmiName": machine, "priority": priority}
    term = _term(to, selector)
    if term:
        spec["addedNodeSelectorTerm"] = term
    document = {"metadata": {"generateName": f"{machine[:200]}-"}, "spec": spec}
    async with connected(where) as (client, namespace):
        made = await client.create(MIGRATIONS, document, namespace)
        click.echo(f"virtualmachineinstancemigration.kubevirt.io/{made.name} created")
        if wait or timeout is not None:
            await _follow_within(client, Key(namespace, made.name), timeout)


@cli.command()
@click.argument("name", metavar="VM|MIGRATION")
@click.option("--wait", is_flag=True, help="Follow it until it is over.")
@asks_a_cluster
async def cancel(where: Where, name: str, wait: bool) -> None:
    """Cancel the migration of VM, or the migration of this name. The guest goes on where it is."""
    from herder.kube.errors import NotFound
    from herder.kube.resources import MIGRATIONS, Key

    async with connected(where) as (client, namespace):
        found = await _unfinished(client, namespace, name)
        for migration in found:
            try:
                await client.delete(MIGRATIONS, Key(namespace, migration.name), uid=migration.uid)
            except NotFound:
                continue
            click.echo(f"virtualmachineinstancemigration.kubevirt.io/{migration.name} is being cancelled")
        if wait:
            for migration in found:
                await _gone(client, Key(namespace, migration.name))


async def _unfinished(client: Client, namespace: str, name: str) -> list[VirtualMachineInstanceMigration]:
    from herder.kube.client import Selection
    from herder.kube.resources import MIGRATIONS
    from herder.rules.migration.phases import finished

    listed = (await client.list(MIGRATIONS, Selection(namespace))).items
    meant = [one for one in listed if name in (one.name, one.spec.vmi_name)]
    found = [one for one in meant if not finished(one)]
    if not found:
        over = f"; {meant[-1].name} is already over" if meant else ""
        raise Refusal(f"there is no migration of {name!r} to cancel in namespace {namespace!r}{over}")
    return found


def _term(to: str | None, selector: str | None) -> Document:
    from herder.rules.targets import written_term

    try:
        return written_term(to or "", selector or "")
    except ValueError as error:
        raise Refusal(str(error), WRONG_USE) from None


async def _follow_within(client: Client, key: Key, timeout: float | None) -> None:
    try:
        async with asyncio.timeout(timeout):
            await _follow(client, key)
    except TimeoutError:
        raise Refusal(f"after {timeout:g} s it is not over yet; `kubectl get vmim {key.name}` says more") from None


async def _follow(client: Client, key: Key) -> None:
    from herder.cli.following import until
    from herder.kube.resources import MIGRATIONS
    from herder.rules.migration.phases import finished, phase_of
    from herder.rules.migration.shown import furthest, line

    showing = _Showing()
    last: VirtualMachineInstanceMigration | None = None

    def is_over(migration: VirtualMachineInstanceMigration | None) -> bool:
        nonlocal last
        if migration is None:
            showing.end()
            raise Refusal(f"migration {key.name} was deleted, which cancels it")
        last = migration
        showing.progress = furthest(migration, showing.progress)
        showing.show(line(migration, showing.progress), phase_of(migration))
        return finished(migration)

    await until(client, MIGRATIONS, key, is_over)
    showing.end()
    if last is not None and phase_of(last) == "Failed":
        status = last.status
        raise Refusal(f"it failed: {(status.message or status.reason) if status else 'no reason was given'}")


async def _gone(client: Client, key: Key) -> None:
    from herder.cli.following import until
    from herder.kube.resources import MIGRATIONS

    await until(client, MIGRATIONS, key, lambda migration: migration is None)
    click.echo(f"virtualmachineinstancemigration.kubevirt.io/{key.name} is gone")


class _Showing:
    """On a terminal one line that changes; elsewhere a line for each phase."""

    def __init__(self) -> None:
        self.progress: MigrationProgress | None = None
        self._said = ""
        self._phase = ""
        self._alive = sys.stdout.isatty()

    def show(self, text: str, phase: str) -> None:
        if text == self._said or (not self._alive and phase == self._phase):
            return
        if self._alive:
            sys.stdout.write(f"\r\x1b[K{text}")
            sys.stdout.flush()
        else:
            click.echo(text)
        self._said, self._phase = text, phase

    def end(self) -> None:
        if self._alive and self._said:
            click.echo()
