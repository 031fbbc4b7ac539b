"""What can go wrong, each as one line: `CrashAfter("controllers", 3)` kills whoever of that role has made its third write.

A fault that says nothing else befalls the n-th write of a role; those that take a time befall a machine at that time.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from abc import ABC, abstractmethod

import msgspec

from herder.kube.client import APPLY_PATCH
from herder.kube.errors import KubeError, Unreachable
from herder.kube.transport import Call, Reply
from tests.simulation.simulation import Simulation
from tests.simulation.wire import Go, Sent, Wire

SERVER_AWAY = 5.0
CUT_OFF = 45.0
# What somebody else has written in between, and nobody may take away again.
FOREIGN = "SomebodyElse"


class Fault(ABC):
    @abstractmethod
    def install(self, simulation: Simulation) -> None: ...

    def aftermath(self, left: dict[str, bytes]) -> str:
        """What is wrong with what is left in the end, beyond what is wrong without any fault; nothing where all is well."""
        return ""


class OnWrite(Fault):
    """Befalls one write of one role, whichever machine makes it."""

    def __init__(self, role: str, write: int) -> None:
        self.role = role
        self.write = write

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.role!r}, {self.write})"

    def install(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.wire.around.append(self._around)

    @property
    def wire(self) -> Wire:
        return self.simulation.wire(self.role)

    async def _around(self, sent: Sent, go: Go) -> Reply:
        if sent.write != self.write:
            return await go()
        self.simulation.trace.add("fault", repr(self))
        return await self.happen(sent, go)

    @abstractmethod
    async def happen(self, sent: Sent, go: Go) -> Reply: ...


class CrashBefore(OnWrite):
    """Killed when it was about to write."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        sent.machine.crash()
        raise asyncio.CancelledError


class CrashAfter(OnWrite):
    """Killed when it had written, before it knew."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        await go()
        sent.machine.crash()
        raise asyncio.CancelledError


class Refused(OnWrite):
    """No answer, and nothing done."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        raise Unreachable("a fault: refused")


class AnswerLost(OnWrite):
    """Done, and no answer."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        await go()
        raise Unreachable("a fault: the answer was lost")


class AnswersLost(Fault):
    """Of a share of all writes of a role: done, and no answer."""

    def __init__(self, role: str, share: float, dice: random.Random) -> None:
        self.role, self.share, self._dice = role, share, dice

    def __repr__(self) -> str:
        return f"AnswersLost({self.role!r}, {self.share})"

    def install(self, simulation: Simulation) -> None:
        simulation.wire(self.role).around.append(self._around)

    async def _around(self, sent: Sent, go: Go) -> Reply:
        reply = await go()
        if sent.write and self._dice.random() < self.share:
            raise Unreachable("a fault: the answer was lost")
        return reply


class Slow(OnWrite):
    """Done at last."""

    seconds = 20.0

    async def happen(self, sent: Sent, go: Go) -> Reply:
        await asyncio.sleep(self.seconds)
        return await go()


class TooSlow(Slow):
    """Nobody waits so long. It is done when nobody counts on it any more."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        self.simulation.api.spawn(_later((sent.call.patience or 0) + self.seconds, go))
        await asyncio.sleep((sent.call.patience or 0) + self.seconds)
        raise Unreachable("a fault: too slow")


class Conflicted(OnWrite):
    """Said to be in conflict with what somebody else wrote."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        return _says(409, "Conflict", "the object has been modified; please apply your changes to the latest version")


class Throttled(OnWrite):
    async def happen(self, sent: Sent, go: Go) -> Reply:
        return _says(429, "TooManyRequests", "too many requests", {"retryAfterSeconds": 1})


class ServerFailed(OnWrite):
    async def happen(self, sent: Sent, go: Go) -> Reply:
        return _says(500, "InternalError", "an error on the server has prevented the request from succeeding")


class ServerRestartBefore(OnWrite):
    """The API server dies when the write arrives: its memory is gone, its store is not."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        self.simulation.api.crash("killed", SERVER_AWAY)
        return await go()


class ServerRestartAfter(OnWrite):
    """The API server dies when it has stored the write, and before it has said so."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        await go()
        self.simulation.api.crash("killed", SERVER_AWAY)
        raise Unreachable("a fault: the server died before it had answered")


class StaleCache(OnWrite):
    """From here on, what is watched comes late."""

    seconds = 30.0

    async def happen(self, sent: Sent, go: Go) -> Reply:
        self.wire.held_until = self.simulation.loop.time() + self.seconds
        return await go()


class WatchBroken(OnWrite):
    """Watches break off, and miss what is written; they can go on from where they were."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        self.wire.break_watches()
        return await go()


class WatchForgotten(WatchBroken):
    """They cannot go on: history is gone."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        self.wire.forgotten = len(self.wire.connections)
        return await super().happen(sent, go)


class WatchDoubled(OnWrite):
    """The next events come twice."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        self.wire.doubled = 5
        return await go()


class LeaderCutOff(OnWrite):
    """The leader reaches nobody any more, and somebody else leads; later it is back, and still knows what it wanted to do."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        self.wire.cut_until[sent.machine.name] = self.simulation.loop.time() + CUT_OFF
        self.wire.break_watches()
        return await go()


class ClockJumpsAhead(OnWrite):
    seconds = 3600.0

    async def happen(self, sent: Sent, go: Go) -> Reply:
        sent.machine.world.jumped += self.seconds
        return await go()


class ClockJumpsBack(ClockJumpsAhead):
    """Not by more than a world at rest is watched for: who waits by the clock waits so much longer, and that is right."""

    seconds = -40.0


class Disturbed(OnWrite):
    """Somebody else writes to the status of the same object, just before; what they wrote is theirs, and stays."""

    async def happen(self, sent: Sent, go: Go) -> Reply:
        where = sent.call.path.removesuffix("/status")
        with_status = sent.call.path != where
        if with_status:
            await self._interfere(where)
        return await go()

    async def _interfere(self, path: str) -> None:
        client = self.simulation.client()
        found = await client.transport.send(Call("GET", path))
        if found.status != 200:
            return  # whose status is written is gone already
        current = msgspec.json.decode(found.body)
        about = {"apiVersion": current["apiVersion"], "kind": current["kind"], "metadata": {"name": current["metadata"]["name"]}}
        condition = {
            "type": FOREIGN,
            "status": "True",
            "reason": "Disturbed",
            "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        body = msgspec.json.encode({**about, "status": {"conditions": [condition]}})
        query = {"fieldManager": "somebody-else", "force": "true"}
        await client.transport.send(Call("PATCH", f"{path}/status", query, body, APPLY_PATCH))
        self.disturbed = current["metadata"]["uid"]

    # Identity of the object; one that is gone in the end has taken it along, and that is right.
    disturbed = ""

    def aftermath(self, left: dict[str, bytes]) -> str:
        there = [raw for raw in left.values() if msgspec.json.decode(raw)["metadata"].get("uid") == self.disturbed]
        return "what somebody else wrote into the status is gone" if there and FOREIGN.encode() not in there[0] else ""


class Killed(Fault):
    """A machine dies at a time, for good or for a while: a node, an agent, a controllers process, the API server."""

    def __init__(self, machine: str, at: float, back_after: float | None = None) -> None:
        self.machine, self.at, self.back_after = machine, at, back_after

    def __repr__(self) -> str:
        return f"Killed({self.machine!r}, {self.at}, {self.back_after})"

    def install(self, simulation: Simulation) -> None:
        simulation.loop.call_at(self.at, self._kill, simulation)

    def _kill(self, simulation: Simulation) -> None:
        machine = simulation.machines[self.machine]
        simulation.trace.add("fault", repr(self))
        machine.restarts = self.back_after is not None
        machine.crash("killed", self.back_after or 0.0)
        machine.restarts = True


ON_WRITES: tuple[type[OnWrite], ...] = (
    *(CrashBefore, CrashAfter, Refused, AnswerLost, Slow, TooSlow, Conflicted, Throttled, ServerFailed),
    *(ServerRestartBefore, ServerRestartAfter, StaleCache, WatchBroken, WatchForgotten, WatchDoubled),
    *(LeaderCutOff, ClockJumpsAhead, ClockJumpsBack, Disturbed),
)


async def _later(seconds: float, go: Go) -> None:
    await asyncio.sleep(seconds)
    with contextlib.suppress(KubeError):
        await go()


def _says(code: int, reason: str, message: str, details: dict[str, int] | None = None) -> Reply:
    about = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return Reply(code, msgspec.json.encode({**about, "message": message, "reason": reason, "code": code, "details": details or {}}))
