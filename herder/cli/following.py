"""Follows an object with a watch until what was asked is so, and shows each new state. Where nothing happens, it is said why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from herder.api.kinds import VirtualMachine
from herder.api.meta import Identified
from herder.cli.asking import Refusal
from herder.cli.pods import pods_of
from herder.cli.progress import Display, Row, reminding
from herder.kube.client import Client, Selection
from herder.kube.errors import Expired, KubeError, ServerFailed, TooManyRequests, Unreachable
from herder.kube.resources import INSTANCES, MACHINES, Key, Resource, key_of
from herder.rules.machines.waiting import Asked, is_hopeless, reached, shown_word, told, waits_for
from herder.rules.machines.wishes import Impossible

# An API server that is restarted is back by then.
PATIENCE = 30.0
LOOK_AGAIN = 0.5
# What a server that is restarted, or has much to do, answers.
PASSING = (Unreachable, ServerFailed, TooManyRequests)
V = TypeVar("V", bound=Identified)


class Away:
    """How long the server has not answered."""

    def __init__(self) -> None:
        self._since: float | None = None

    def answered(self) -> None:
        self._since = None

    def silent(self, error: KubeError) -> None:
        """Raises the error once it has lasted too long."""
        now = asyncio.get_running_loop().time()
        self._since = self._since if self._since is not None else now
        if now - self._since > PATIENCE:
            raise error

    @property
    def told(self) -> str:
        """Empty where it answers."""
        return "" if self._since is None else f"the API server does not answer; it is asked again for {PATIENCE:g} s"


class MachineFollower:
    """What was asked of a machine, and how far it is."""

    def __init__(self, client: Client, asked: Asked, shown: Display) -> None:
        self._client = client
        self._asked = asked
        self._shown = shown
        self._away = Away()
        self.now = asked.machine

    async def run(self) -> None:
        async with reminding(self._shown, self._why):
            await until(self._client, MACHINES, key_of(self._asked.machine), self._is_there, self._away)

    def _is_there(self, machine: VirtualMachine | None) -> bool:
        try:
            done = reached(self._asked, machine)
        except Impossible as sentence:
            raise Refusal(f"cannot {self._asked.verb} it now: {sentence}") from None
        assert machine is not None, "one that is gone is impossible"
        self.now = machine
        # What fails is said once, when it is known to be about this; it may be left from before.
        if done or not is_hopeless(machine):
            self._shown.show([Row("", "done" if done else "waits", told(machine), step=_step(machine))])
        return done

    async def _why(self) -> str:
        if self._away.told:
            return self._away.told
        key = key_of(self._asked.machine)
        try:
            instance = await self._client.find(INSTANCES, key)
            pods = await pods_of(self._client, instance) if instance is not None else []
        except KubeError:
            # Who may not look further is told what the machine itself says.
            return told(self.now)
        return waits_for(self._asked, self.now, instance, pods[-1] if pods else None)


def _step(machine: VirtualMachine) -> str:
    """What is news: not each percent of a disk that is imported."""
    status = machine.status
    return f"{shown_word(machine)} {status.node_name or ''} {status.reason or ''}" if status is not None else shown_word(machine)


async def until(
    client: Client, resource: Resource[V], key: Key, is_there: Callable[[V | None], bool], away: Away | None = None
) -> None:
    """Shows `is_there` every state of the object (None: it is gone) until it says yes. A server may be away for a while."""
    away = away or Away()
    while True:
        try:
            if await _until_lost(client, resource, key, is_there, away):
                return
        except Expired:
            pass
        except PASSING as error:
            away.silent(error)
        await asyncio.sleep(LOOK_AGAIN)


async def _until_lost(client: Client, resource: Resource[V], key: Key, is_there: Callable[[V | None], bool], away: Away) -> bool:
    """Until it is so, or until the watch has ended and a new one is needed."""
    found = await client.find(resource, key)
    away.answered()
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
