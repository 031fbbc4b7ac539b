"""Follows an object with a watch until what was asked is so, and shows each new state in a line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from herder.api.kinds import VirtualMachine
from herder.api.meta import Identified
from herder.cli.asking import Refusal
from herder.kube.client import Client, Selection
from herder.kube.errors import Expired, Unreachable
from herder.kube.resources import MACHINES, Key, Resource, key_of
from herder.rules.machines.waiting import Asked, reached, told
from herder.rules.machines.wishes import Impossible

# An API server that is restarted is back by then.
PATIENCE = 30.0
LOOK_AGAIN = 0.5
V = TypeVar("V", bound=Identified)


async def follow(client: Client, asked: Asked, say: Callable[[str], None]) -> None:
    said = ""

    def is_there(machine: VirtualMachine | None) -> bool:
        nonlocal said
        try:
            done = reached(asked, machine)
        except Impossible as sentence:
            raise Refusal(f"cannot {asked.verb} it now: {sentence}") from None
        if machine is not None and (line := told(machine)) != said:
            said = line
            say(line)
        return done

    await until(client, MACHINES, key_of(asked.machine), is_there)


async def until(client: Client, resource: Resource[V], key: Key, is_there: Callable[[V | None], bool]) -> None:
    """Shows `is_there` every state of the object (None: it is gone) until it says yes. A server may be away for a while."""
    lost_at: float | None = None
    while True:
        try:
            if await _until_lost(client, resource, key, is_there):
                return
            lost_at = None
        except Expired:
            pass
        except Unreachable:
            now = asyncio.get_running_loop().time()
            lost_at = lost_at or now
            if now - lost_at > PATIENCE:
                raise
        await asyncio.sleep(LOOK_AGAIN)


async def _until_lost(client: Client, resource: Resource[V], key: Key, is_there: Callable[[V | None], bool]) -> bool:
    """Until it is so, or until the watch has ended and a new one is needed."""
    found = await client.find(resource, key)
    if is_there(found) or found is None:
        return True
    only = Selection(key.namespace, fields=f"metadata.name={key.name}")
    version = getattr(found, "metadata").resource_version or ""  # noqa: B009 - declared by the views
    async for event in client.watch(resource, version, only):
        if event.type == "BOOKMARK":
            continue
        seen = None if event.type == "DELETED" else msgspec.json.decode(event.object, type=resource.view)
        if is_there(seen):
            return True
    return False
