"""Follows a machine with a watch until what was asked is so, and shows each new state in a line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from herder.api.kinds import VirtualMachine
from herder.cli.asking import Refusal
from herder.kube.client import Client, Selection
from herder.kube.errors import Expired, Unreachable
from herder.kube.resources import MACHINES, key_of
from herder.rules.machines.waiting import Asked, reached, told
from herder.rules.machines.wishes import Impossible

# An API server that is restarted is back by then.
PATIENCE = 30.0
LOOK_AGAIN = 0.5


async def follow(client: Client, asked: Asked, say: Callable[[str], None]) -> None:
    follower = _Follower(asked, say)
    while True:
        if await _until_lost(client, follower):
            return
        await asyncio.sleep(LOOK_AGAIN)


class _Follower:
    def __init__(self, asked: Asked, say: Callable[[str], None]) -> None:
        self.asked = asked
        self._say = say
        self._said = ""
        self._lost_at: float | None = None

    def is_there(self, machine: VirtualMachine | None) -> bool:
        self._lost_at = None
        try:
            done = reached(self.asked, machine)
        except Impossible as sentence:
            raise Refusal(f"cannot {self.asked.verb} it now: {sentence}") from None
        if machine is not None and (line := told(machine)) != self._said:
            self._said = line
            self._say(line)
        return done

    def lost(self, error: Unreachable) -> None:
        now = asyncio.get_running_loop().time()
        self._lost_at = self._lost_at or now
        if now - self._lost_at > PATIENCE:
            raise error


async def _until_lost(client: Client, follower: _Follower) -> bool:
    """Until it is so, or until the watch has ended and a new one is needed."""
    key = key_of(follower.asked.machine)
    try:
        machine = await client.find(MACHINES, key)
        if follower.is_there(machine) or machine is None:
            return True
        only = Selection(key.namespace, fields=f"metadata.name={key.name}")
        async for event in client.watch(MACHINES, machine.metadata.resource_version or "", only):
            if event.type == "BOOKMARK":
                continue
            seen = None if event.type == "DELETED" else msgspec.json.decode(event.object, type=VirtualMachine)
            if follower.is_there(seen):
                return True
    except Unreachable as error:
        follower.lost(error)
    except Expired:
        pass
    return False
