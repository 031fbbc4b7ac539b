"""`herder pool rollout`: status, history, pause, resume, restart, undo, and one machine before its turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from herder.api.problems import printable
from herder.cli.asking import Refusal, Where, asks_a_cluster, connected
from herder.cli.output import output_option, show
from herder.cli.pool.group import machine_argument, pool_argument, rollout
from herder.cli.timeouts import MACHINES as ONE_MACHINE
from herder.cli.timeouts import ROLLOUTS as PATIENCE
from herder.cli.timeouts import chosen, timeout_option, within

if TYPE_CHECKING:
    from herder.api.kinds import VirtualMachinePool
    from herder.cli.output import Format
    from herder.cli.tables import Part
    from herder.kube.client import Client
    from herder.kube.resources import Key
    from herder.rules.pools.history import PoolHistory
    from herder.rules.pools.wishes import Wish

MOST_NAMED = 5
MOST_CHANGES = 3
LOOK_AGAIN = 0.5


def _wait_options(command: Any) -> Any:
    waits = click.option("--wait", is_flag=True, help="Follow the rollout until it is complete, or does not go on.")
    return waits(timeout_option(PATIENCE)(command))


@rollout.command()
@pool_argument
@click.option("--no-wait", is_flag=True, help="Say how far it is, and do not follow it.")
@timeout_option(PATIENCE)
@asks_a_cluster
async def status(where: Where, name: str, no_wait: bool, timeout: float | None) -> None:
    """Follow the rollout of POOL until all machines have its template.

    Ends with 0 once they have, or as many as proactive.limit allows; with 8 where it does not go on by itself: it was halted,
    rolled back or paused, or the updateStrategy rolls nothing out; with 9 when the time is up.
    """
    from herder.cli.pool.reading import read_pool
    from herder.rules.pools.waiting import rollout_standing

    async with connected(where) as (client, namespace):
        found, _ = await read_pool(client, namespace, name)
        if not no_wait:
            await _follow(client, found, chosen(timeout, PATIENCE))
            return
        standing = rollout_standing(found)
        if standing.state == "held":
            raise Refusal(standing.text)
        # It may quote what somebody else has written.
        click.echo(printable(f"{standing.percent}%: {standing.text}"))


@rollout.command()
@pool_argument
@output_option
@asks_a_cluster
async def history(where: Where, name: str, output: Format | None) -> None:
    """List the revisions of the template of POOL, who has which, and what each changed."""
    from herder.cli.pool.reading import machines_of, members_of, read_pool, read_revisions
    from herder.rules.plans import text_of
    from herder.rules.pools.gather import usable_revision
    from herder.rules.pools.history import PoolHistory, history_rows
    from herder.rules.pools.revisions import wanted_revision

    async with connected(where) as (client, namespace):
        found, written = await read_pool(client, namespace, name)
        stored = await read_revisions(client, found)
        members = members_of(found, *await machines_of(client, namespace))
        known = [revision for one in stored if (revision := usable_revision(found, one)) is not None]
        created = {one.name: text_of(made) for one in stored if (made := one.metadata.creation_timestamp) is not None}
        wanted = wanted_revision(found, *_template(written)).name
        current = (found.status.current_revision if found.status else None) or ""
        show(PoolHistory(namespace, name, history_rows(known, created, members, wanted, current)), _history_text, output)


def _template(written: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """With the flags that say which of its names get a number."""
    return written["spec"]["template"], written["spec"].get("nameGeneration") or {}


def _history_text(found: PoolHistory) -> list[Part]:
    from herder.cli.tables import Table, age

    if not found.revisions:
        return [f"pool {found.name} has no revision yet: the controllers have not looked at it"]
    rows = [
        (
            str(row.number),
            row.name,
            age(row.created),
            _in_short(row.machines, ", ", MOST_NAMED),
            ", ".join(word for word, holds in (("template", row.wanted), ("last complete", row.current)) if holds),
            _in_short(row.changes, "; ", MOST_CHANGES),
        )
        for row in found.revisions
    ]
    return [Table(("REVISION", "NAME", "AGE", "VMS", "IS", "CHANGED"), rows)]


def _in_short(words: tuple[str, ...], between: str, most: int) -> str:
    return between.join(words[:most]) + (f"{between}and {len(words) - most} more" if len(words) > most else "")


@rollout.command()
@pool_argument
@asks_a_cluster
async def pause(where: Where, name: str) -> None:
    """Hold the rollout of POOL where it is. Scaling and healing go on."""
    from herder.rules.pools import wishes

    async with connected(where) as (client, namespace):
        await _ask(client, namespace, name, lambda found: wishes.pause(found, undo=False))


@rollout.command()
@pool_argument
@_wait_options
@asks_a_cluster
async def resume(where: Where, name: str, wait: bool, timeout: float | None) -> None:
    """Let the rollout of POOL go on."""
    from herder.rules.pools import wishes

    async with connected(where) as (client, namespace):
        found = await _ask(client, namespace, name, lambda found: wishes.pause(found, undo=True))
        await _follow_if_asked(client, found, wait, timeout)


@rollout.command()
@pool_argument
@_wait_options
@asks_a_cluster
async def restart(where: Where, name: str, wait: bool, timeout: float | None) -> None:
    """Restart all machines of POOL, a few at a time, as for a changed template."""
    from herder.api.world import RealWorld
    from herder.rules.pools import wishes

    async with connected(where) as (client, namespace):
        found = await _ask(client, namespace, name, lambda found: wishes.restart(found, RealWorld().now()))
        await _follow_if_asked(client, found, wait, timeout)


@rollout.command()
@pool_argument
@click.option("--to-revision", "number", metavar="N", type=click.IntRange(1), help="Of the history.  [default: the one before]")
@_wait_options
@asks_a_cluster
async def undo(where: Where, name: str, number: int | None, wait: bool, timeout: float | None) -> None:
    """Give POOL an earlier template again, which is rolled out like any other. Nothing else of the pool is changed."""
    async with connected(where) as (client, namespace):
        found = await _undo(client, namespace, name, number)
        await _follow_if_asked(client, found, wait, timeout)


async def _undo(client: Client, namespace: str, name: str, number: int | None) -> VirtualMachinePool:
    from herder.cli.pool.reading import TRIES, read_pool, read_revisions, told
    from herder.kube.client import JSON_PATCH
    from herder.kube.errors import Conflict
    from herder.kube.resources import POOLS, key_of
    from herder.rules.pools import wishes
    from herder.rules.pools.gather import usable_revision

    found, written = await read_pool(client, namespace, name)
    stored = await read_revisions(client, found)
    known = [one for each in stored if (one := usable_revision(found, each)) is not None]
    revision = told(lambda: wishes.undo(found, written, known, number))
    if revision is None:
        click.echo(f"virtualmachinepool.kubevirt.io/{name} unchanged: its template is that of revision {number} already")
        return found
    generation = found.metadata.generation
    for _ in range(TRIES):
        try:
            changed = await client.patch(POOLS, key_of(found), wishes.back_to(found, written, revision), content_type=JSON_PATCH)
        except Conflict:
            found, written = await read_pool(client, namespace, name)
            if found.metadata.generation != generation:
                raise Refusal(f"pool {name} was changed by somebody else meanwhile; look at it again") from None
            continue
        click.echo(f"virtualmachinepool.kubevirt.io/{name} goes back to revision {revision.number}, {revision.name}")
        return changed
    raise Refusal(f"pool {name} is changed all the time; try again")


@rollout.command()
@machine_argument
@click.option("--wait", is_flag=True, help="Follow it until it is ready with that revision.")
@timeout_option(ONE_MACHINE)
@asks_a_cluster
async def replace(where: Where, machine: str, wait: bool, timeout: float | None) -> None:
    """Bring VM to the template of its pool before its turn: it is the next one that is restarted for it.

    So also while the rollout is paused, and where the updateStrategy leaves updates to people. maxUnavailable holds: while too many
    machines are not available, it waits.
    """
    from herder.cli.pool.reading import ask, pool_of_machine
    from herder.kube.resources import INSTANCES, MACHINES, Key
    from herder.rules.pools import wishes
    from herder.rules.pools.member import member_of
    from herder.rules.pools.revisions import wanted_revision

    async with connected(where) as (client, namespace):
        key = Key(namespace, machine)
        _, found, written = await pool_of_machine(client, namespace, machine)
        wanted = wanted_revision(found, *_template(written))
        instance = await client.find(INSTANCES, key)
        wish = await ask(
            client, MACHINES, key, lambda now: wishes.replace(now, found, member_of(found.name, now, instance), wanted)
        )
        click.echo(f"virtualmachine.kubevirt.io/{machine} {wish.said}")
        if wait or timeout is not None:
            async with within(chosen(timeout, ONE_MACHINE), lambda: f"{machine} does not have {wanted.name} yet. It goes on"):
                await _until_replaced(client, found, key, wanted.name)


async def _until_replaced(client: Client, found: VirtualMachinePool, key: Key, wanted: str) -> None:
    """By looking now and then: what is waited for is said by three objects."""
    from herder.cli.pool.reading import read_pool
    from herder.kube.resources import INSTANCES, MACHINES
    from herder.rules.pools.member import member_of
    from herder.rules.pools.rollout import is_updated

    while True:
        member = member_of(found.name, await client.get(MACHINES, key), await client.find(INSTANCES, key))
        if is_updated(member, wanted) and (member.ready or member.off):
            click.echo(f"VirtualMachine {key.name} is ready with revision {wanted}" if member.ready else f"{key.name} has {wanted}")
            return
        now, _ = await read_pool(client, key.namespace, found.name)
        if now.status is not None and now.status.failed_revision == wanted:
            raise Refusal(f"the rollout of {wanted} failed; `herder pool rollout status {found.name}` says why")
        await asyncio.sleep(LOOK_AGAIN)


async def _ask(client: Client, namespace: str, name: str, decide: Any) -> VirtualMachinePool:
    from herder.cli.pool.reading import ask, read_pool
    from herder.kube.resources import POOLS, Key

    await read_pool(client, namespace, name)
    wish: Wish = await ask(client, POOLS, Key(namespace, name), decide)
    click.echo(f"virtualmachinepool.kubevirt.io/{name} {wish.said}")
    return await client.get(POOLS, Key(namespace, name))


async def _follow_if_asked(client: Client, found: VirtualMachinePool, wait: bool, timeout: float | None) -> None:
    """Who says how long waits."""
    if wait or timeout is not None:
        await _follow(client, found, chosen(timeout, PATIENCE))


async def _follow(client: Client, found: VirtualMachinePool, timeout: float | None) -> None:
    from herder.cli.pool.follower import RolloutFollower
    from herder.cli.progress import display

    def not_yet() -> str:
        return f"it is not complete yet: {follower.standing.text}. It goes on: `herder pool rollout status {found.name}` follows it"

    with display() as shown:
        follower = RolloutFollower(client, found, shown)
        async with within(timeout, not_yet):
            await follower.run()
