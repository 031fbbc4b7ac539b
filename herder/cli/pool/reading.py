"""What the commands for pools read, live, and how they write: again where somebody was faster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from herder.api import defaults, labels
from herder.api.account import SYSTEM_NAMESPACE
from herder.api.core import ControllerRevision, HorizontalPodAutoscaler
from herder.api.kinds import VirtualMachine, VirtualMachineInstance, VirtualMachinePool
from herder.api.meta import Identified
from herder.api.problems import nearest
from herder.cli.asking import Refusal
from herder.kube.client import Client, Selection
from herder.kube.errors import Conflict, Forbidden, NotFound
from herder.kube.resources import (
    AUTOSCALERS,
    CLAIMS,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DATA_VOLUMES,
    INSTANCES,
    MACHINES,
    NODES,
    POOLS,
    Key,
    Resource,
)
from herder.rules.herder_config import BUILT_IN, NAME, PoolsConfiguration, next_in_use
from herder.rules.herder_config import POOLS as POOLS_FILE
from herder.rules.machines.wishes import Impossible
from herder.rules.pools.gather import Everything, by_number, snapshot_of
from herder.rules.pools.member import Member, member_of
from herder.rules.pools.snapshot import PoolSnapshot
from herder.rules.pools.wishes import Wish, no_machine, own_pool

Document = dict[str, Any]
V = TypeVar("V", bound=Identified)
TRIES = 20
MOST_NAMED = 10
NO_NODES = "you may not read nodes: all are taken to answer, and no policy by nodeSelector to match"
NO_CONFIG = f"you may not read ConfigMap {NAME}: at most {defaults.POOL_BURST} machines are taken to be on their way at a time"


async def read_pool(client: Client, namespace: str, name: str) -> tuple[VirtualMachinePool, Document]:
    """The pool, and as it is stored."""
    try:
        raw = await client.get_raw(POOLS, Key(namespace, name))
    except NotFound:
        raise Refusal(await _no_pool(client, namespace, name)) from None
    return POOLS.decode(raw), msgspec.json.decode(raw)


async def _no_pool(client: Client, namespace: str, name: str) -> str:
    known = [one.name for one in (await client.list(POOLS, Selection(namespace))).items]
    close = nearest(name, known)
    more = f"; did you mean {close}?" if close else f"; there are: {', '.join(known[:MOST_NAMED])}" if known else ", and no other"
    return f"there is no pool {name!r} in namespace {namespace!r}{more}"


async def read_machine(client: Client, namespace: str, name: str) -> VirtualMachine:
    try:
        return await client.get(MACHINES, Key(namespace, name))
    except NotFound:
        raise Refusal(await _no_machine(client, namespace, name)) from None


async def _no_machine(client: Client, namespace: str, name: str) -> str:
    try:
        machines, pools = await asyncio.gather(
            client.list(MACHINES, Selection(namespace)), client.list(POOLS, Selection(namespace))
        )
    except Forbidden:
        return no_machine(namespace, name, (), ())
    return no_machine(namespace, name, machines.items, [one.name for one in pools.items])


async def pool_of_machine(client: Client, namespace: str, name: str) -> tuple[VirtualMachine, VirtualMachinePool, Document]:
    """A machine, and the pool that it is of."""
    machine = await read_machine(client, namespace, name)
    owner = told(lambda: own_pool(machine))
    pool, written = await read_pool(client, namespace, owner.name)
    if pool.uid != owner.uid:
        raise Refusal(f"VirtualMachine {name} is of a pool {owner.name} that is gone, and not of the one that has its name now")
    return machine, pool, written


async def machines_of(client: Client, namespace: str) -> tuple[list[VirtualMachine], list[VirtualMachineInstance]]:
    """All of the namespace: whose they are is said by their owners, and not by a label."""
    machines, instances = await asyncio.gather(
        client.list(MACHINES, Selection(namespace)), client.list(INSTANCES, Selection(namespace))
    )
    return machines.items, instances.items


def members_of(pool: VirtualMachinePool, machines: list[VirtualMachine], instances: list[VirtualMachineInstance]) -> list[Member]:
    by_name = {one.name: one for one in instances}
    ours = (machine for machine in machines if machine.controller_uid == pool.uid)
    return sorted((member_of(pool.name, one, by_name.get(one.name)) for one in ours), key=by_number)


async def read_snapshot(client: Client, pool: VirtualMachinePool, written: Document) -> tuple[PoolSnapshot, list[str]]:
    """What the controller makes its plan from, and what of it this person may not see."""
    here, unknown = pool.namespace, list[str]()
    (machines, instances), volumes, claims, revisions = await asyncio.gather(
        machines_of(client, here),
        client.list(DATA_VOLUMES, Selection(here)),
        client.list(CLAIMS, Selection(here)),
        read_revisions(client, pool),
    )
    try:
        nodes = (await client.list(NODES)).items
    except Forbidden:
        nodes, unknown = [], [NO_NODES]
    everything = Everything(
        machines=machines,
        instances=instances,
        volumes=volumes.items,
        claims=claims.items,
        revisions=revisions,
        nodes=nodes,
    )
    burst = await _burst(client)
    unknown += [NO_CONFIG] if burst is None else []
    return snapshot_of(pool, written, everything, burst=burst or defaults.POOL_BURST), unknown


async def read_revisions(client: Client, pool: VirtualMachinePool) -> list[ControllerRevision]:
    """By their label; whether they are the pool's own is looked at by who uses them."""
    return (await client.list(CONTROLLER_REVISIONS, Selection(pool.namespace, labels=f"{labels.POOL}={pool.name}"))).items


async def read_autoscalers(client: Client, namespace: str) -> list[HorizontalPodAutoscaler]:
    """None for who may not see them, and where nobody has heard of them."""
    try:
        return (await client.list(AUTOSCALERS, Selection(namespace))).items
    except (Forbidden, NotFound):
        return []


async def _burst(client: Client) -> int | None:
    try:
        found = await client.find(CONFIG_MAPS, Key(SYSTEM_NAMESPACE, NAME))
    except Forbidden:
        return None
    value = next_in_use(BUILT_IN, found).values[POOLS_FILE]
    assert isinstance(value, PoolsConfiguration)
    return value.burst


T = TypeVar("T")


def told(decide: Callable[[], T]) -> T:
    """What cannot be is told to the person."""
    try:
        return decide()
    except Impossible as sentence:
        raise Refusal(str(sentence)) from None


async def _missing(client: Client, resource: Resource[Any], key: Key) -> str:
    return await (_no_pool if resource is POOLS else _no_machine)(client, key.namespace, key.name)


async def ask(client: Client, resource: Resource[V], key: Key, decide: Callable[[V], Wish]) -> Wish:
    """Patches the object as `decide` says of its state, and decides again where that has changed meanwhile."""
    for _ in range(TRIES):
        try:
            current = await client.get(resource, key)
        except NotFound:
            raise Refusal(await _missing(client, resource, key)) from None
        wish = told(lambda current=current: decide(current))
        if wish.patch is None:
            return wish
        try:
            await client.patch(resource, key, wish.patch)
        except Conflict:
            continue
        return wish
    raise Refusal(f"{resource.qualified} {key.name} is changed all the time; try again")
