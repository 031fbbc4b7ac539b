"""Shows on an object that its reconcile fails again and again: as a condition, where its kind has conditions, and as one event.

The condition is KubeVirt's `Synchronized`: False, with why, while it fails; absent otherwise. It is written by server-side apply
under a manager of its own, one for each controller, so that neither a controller's status nor another controller takes it away.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import structlog

from herder.api import reasons
from herder.api.meta import Identified, ObjectMeta
from herder.api.world import World, timestamp
from herder.kube.cache import Cache, Stored
from herder.kube.client import Client, Document
from herder.kube.errors import (
    ApiStatusError,
    Conflict,
    Expired,
    KubeError,
    Misconfigured,
    NotFound,
    NotLeading,
    ServerFailed,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from herder.kube.events import Recorder
from herder.kube.resources import OUR_KINDS, Key, written

log = structlog.get_logger()
# The first tries follow one another within milliseconds: what passes within a second is not worth showing.
TIMES = 3
SECONDS = 1.0
LONGEST_MESSAGE = 1024
# What passes by itself, and what nobody who looks at the object could do anything about.
ORDINARY = (Conflict, Expired, Misconfigured, NotLeading, TooManyRequests, Unauthorized, Unreachable)
# The server has answered, and its answer is a bug, or a webhook of somebody's that is broken: that does not pass by itself.
_LASTING_SERVER_ERROR = 500
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{0,127}")


class ReconcileTimeout(Exception):
    """A reconcile that hung, and was ended."""


def is_ordinary(error: Exception) -> bool:
    """Whether the error is of a kind that passes by itself: a conflict, a server that is away or busy, a namespace that goes."""
    if isinstance(error, ServerFailed):
        return error.code != _LASTING_SERVER_ERROR
    return isinstance(error, ORDINARY) or (isinstance(error, ApiStatusError) and error.namespace_terminating)


def said(error: Exception) -> tuple[str, str]:
    """Reason and message: the API server's own words, where it refused us."""
    if isinstance(error, ApiStatusError):
        reason = error.reason if _WORD.fullmatch(error.reason) else reasons.RECONCILE_FAILED
        return reason, _bounded(str(error))
    if isinstance(error, ReconcileTimeout):
        return reasons.RECONCILE_TIMEOUT, _bounded(str(error))
    if isinstance(error, KubeError):
        return reasons.RECONCILE_FAILED, _bounded(str(error))
    return reasons.INTERNAL_ERROR, _bounded(f"an error in herder itself: {type(error).__name__}: {error}")


def _bounded(message: str) -> str:
    """Without what no terminal should be sent."""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in message[: LONGEST_MESSAGE + 1])
    return plain if len(plain) <= LONGEST_MESSAGE else plain[: LONGEST_MESSAGE - 1] + "…"


class _Condition(msgspec.Struct, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _Conditions(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Status(msgspec.Struct):
    status: _Conditions | None = None


class _Named(Identified, msgspec.Struct, frozen=True):
    """An object of which an event is told, whatever else it is: its view may be what cannot be read."""

    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""


class _Bare(msgspec.Struct):
    metadata: ObjectMeta


_status = msgspec.json.Decoder(_Status)
_bare = msgspec.json.Decoder(_Bare)


class _Streak(msgspec.Struct):
    """Failures in a row of one object."""

    uid: str
    since: float
    count: int = 0
    # How many there were when it was last shown.
    shown: int = 0
    reason: str = ""
    message: str = ""


class Failures:
    """Of one controller, about the objects that its names are names of."""

    def __init__(self, controller: str, client: Client, recorder: Recorder, world: World, objects: Cache[Any]) -> None:
        self._client = client
        self._recorder = recorder
        self._world = world
        self._objects = objects
        self._manager = f"herder-{controller}-failures"
        # By this one sees that there is something to take away, without reading the object.
        self._mark = f'"{self._manager}"'.encode()
        self._has_conditions = objects.resource in OUR_KINDS
        self._clock = asyncio.get_running_loop().time
        self._streaks: dict[Key, _Streak] = {}

    async def failed(self, key: Key, error: Exception) -> None:
        """Never raises: it is tried again with the next failure."""
        stored = self._objects.stored(key)
        if stored is None:
            self._streaks.pop(key, None)
            return
        if is_ordinary(error):
            return
        streak = self._counted(stored)
        # A sentence that is another one each time is rewritten ever more rarely: each write makes the controller look again.
        if streak.count < max(TIMES, 2 * streak.shown) or self._clock() - streak.since < SECONDS:
            return
        try:
            await self._show(stored, streak, *said(error))
        except Exception as problem:
            log.info("a failure could not be shown", error=str(problem), reason=type(problem).__name__)
        else:
            streak.shown = streak.count

    async def succeeded(self, key: Key) -> None:
        """Raises what keeps the condition from being taken away, so that it is tried again."""
        self._streaks.pop(key, None)
        stored = self._objects.stored(key) if self._has_conditions else None
        if stored is not None and self._mark in stored.raw:
            await self._apply(stored, {})

    def _counted(self, stored: Stored[Any]) -> _Streak:
        streak = self._streaks.get(stored.key)
        if streak is None or streak.uid != stored.uid:
            streak = self._streaks[stored.key] = _Streak(stored.uid, self._clock())
        streak.count += 1
        return streak

    async def _show(self, stored: Stored[Any], streak: _Streak, reason: str, message: str) -> None:
        told = (streak.reason, streak.message) == (reason, message)
        if self._has_conditions:
            known = _known(stored)
            told = known is not None and (known.reason, known.message) == (reason, message)
            if not told:
                since = (known and known.last_transition_time) or timestamp(self._world.now())
                await self._apply(stored, {"status": {"conditions": [_condition(reason, message, since)]}})
        if not told:
            self._recorder.warning(self._named(stored), reasons.RECONCILE_FAILED, f"{reason}: {message}")
        streak.reason, streak.message = reason, message

    async def _apply(self, stored: Stored[Any], document: Document) -> None:
        resource = written(self._objects.resource)
        wanted = {**document, "metadata": {"uid": stored.uid}}
        try:
            made = await self._client.apply(resource, stored.key, wanted, subresource="status", manager=self._manager)
        except NotFound:
            return
        await self._objects.wait_seen(made.metadata.resource_version or "")

    def _named(self, stored: Stored[Any]) -> _Named:
        resource = self._objects.resource
        return _Named(_bare.decode(stored.raw).metadata, resource.api_version, resource.kind)


def _known(stored: Stored[Any]) -> _Condition | None:
    status = _status.decode(stored.raw).status
    listed = (status.conditions if status is not None else None) or ()
    return next((one for one in listed if one.type == reasons.SYNCHRONIZED and one.status == "False"), None)


def _condition(reason: str, message: str, since: str) -> Document:
    return {
        "type": reasons.SYNCHRONIZED,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
