"""What `herder migrate` asks before it makes a migration: is there a guest, and is there a node that could ever take it."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.kinds import VirtualMachineInstance
from herder.cli.asking import WRONG_USE, Refusal
from herder.cli.reviews import reviewed
from herder.kube.client import Client
from herder.kube.errors import Forbidden, NotFound
from herder.kube.resources import INSTANCES, MACHINES, NODES, Key, key_of
from herder.rules.evictions import why_not_movable
from herder.rules.migration.preflight import why_no_guest, why_no_instance
from herder.rules.migration.where import no_node_ever
from herder.rules.placement.gather import Everything, snapshot_of
from herder.rules.reviews import explained_migration
from herder.rules.targets import Added, Impossible

Document = dict[str, Any]
# For the answer to a review, in seconds: less than who only asks would wait, since the migration can be made without.
PATIENCE = 10.0


async def refuse_what_cannot_be(client: Client, key: Key, term: Document) -> None:
    """Whatever else is wrong the API server says when the migration is made."""
    try:
        raw = await client.get_raw(INSTANCES, key)
    except Forbidden:
        return
    except NotFound:
        await _refuse_what_is_off(client, key)
        return
    instance = msgspec.json.decode(raw, type=VirtualMachineInstance)
    if why := why_no_guest(instance):
        raise Refusal(why)
    if instance.status is not None and instance.status.phase == "Running" and not why_not_movable(instance):
        await _refuse_where_no_node_fits(client, instance, msgspec.json.decode(raw), term)


async def _refuse_what_is_off(client: Client, key: Key) -> None:
    try:
        machine = await client.find(MACHINES, key)
    except Forbidden:
        return
    if machine is not None:
        raise Refusal(why_no_instance(machine))


async def _refuse_where_no_node_fits(client: Client, instance: VirtualMachineInstance, written: Document, term: Document) -> None:
    try:
        found = await _no_node(client, instance, written, term)
    except ValueError as error:
        raise Refusal(str(error), WRONG_USE) from None
    if found is not None:
        name = instance.name
        said = f"no node can take {name}, so no migration was made: {found.reason}: {found.message}"
        raise Refusal(f"{said}. `herder explain target {name}` shows each node")


async def _no_node(client: Client, instance: VirtualMachineInstance, written: Document, term: Document) -> Impossible | None:
    try:
        nodes = (await client.list(NODES)).items
    except Forbidden as error:
        return await _reviewed(client, instance, term, error)
    return no_node_ever(instance, written, Added(term), snapshot_of(Everything(nodes, ())), lambda: nodes)


async def _reviewed(client: Client, instance: VirtualMachineInstance, term: Document, because: Forbidden) -> Impossible | None:
    """Of who may not ask in this way either, or is not answered, the migration is made, and its controller decides."""
    try:
        answer = await reviewed(client, key_of(instance), term, because, PATIENCE)
    except Refusal:
        return None
    return explained_migration(instance, answer).impossible
