"""Who comes with a token instead of a certificate, as a metrics-server does: the API server says whose it is, and what they may.

Every pod of a cluster has a token, so those who have one are not trusted to ask in moderation. What was answered is kept for a
moment; what was asked in vain is counted against the address it came from, and then against all; and few questions are asked at
once. Tokens themselves are not kept.
"""

from __future__ import annotations

import asyncio
import time
from hashlib import sha256

import msgspec

from herder.kube.bucket import Rate
from herder.kube.client import Client
from herder.kube.errors import error_from
from herder.kube.transport import Call
from herder.nodes.endpoint.callers import Caller, Callers, Wanted
from herder.nodes.endpoint.remembered import Allowance, Clock, Remembered

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
# In seconds: a kubelet keeps who somebody is for 2 minutes, what they may for 5, and what they may not for 30 seconds.
KEPT = 120.0
KEPT_REFUSED = 10.0
AT_ONCE = 8
IN_VAIN = Rate(20, 1.0)
IN_VAIN_TOGETHER = Rate(100, 10.0)
# In seconds: whoever asks us waits as long.
PATIENCE = 10.0
UNKNOWN = "the API server does not know this token, or it is no longer good"
TOO_MANY = "too many were refused of late; try again in a few seconds"


class Refused(Exception):
    """With the status of HTTP that says so."""

    def __init__(self, status: int, sentence: str, caller: str = "") -> None:
        super().__init__(sentence)
        self.status = status
        self.caller = caller


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class Tokens:
    def __init__(self, client: Client, callers: Callers, clock: Clock = time.monotonic) -> None:
        """`callers` know what somebody may."""
        self._client = client
        self._callers = callers
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._allowance = Allowance(IN_VAIN, IN_VAIN_TOGETHER, clock)
        # Good and bad apart: whoever makes up tokens drives out nobody who has one.
        self._known: Remembered[bytes, Caller] = Remembered(KEPT, clock)
        self._unknown: Remembered[bytes, str] = Remembered(KEPT_REFUSED, clock)
        self._allowed: Remembered[tuple[Caller, Wanted], bool] = Remembered(KEPT, clock)
        self._forbidden: Remembered[tuple[Caller, Wanted], str] = Remembered(KEPT_REFUSED, clock)

    async def admit(self, token: str, address: str, wanted: Wanted) -> Caller:
        """Whose token it is, if they may. Raises Refused, and KubeError where nobody can say."""
        key = sha256(token.encode()).digest()
        if (caller := self._remembered(key, wanted)) is not None:
            return caller
        async with self._at_once:
            # Many come with the same token at once: the first has asked by now.
            if (caller := self._remembered(key, wanted)) is not None:
                return caller
            if not self._allowance.take(address):
                raise Refused(429, TOO_MANY)
            # Without an answer it was in vain as well: an API server in trouble is not asked more often.
            caller = await self._asked(key, token, wanted)
            self._allowance.give_back(address)
            return caller

    def _remembered(self, key: bytes, wanted: Wanted) -> Caller | None:
        """Raises Refused where that is what is remembered."""
        if (sentence := self._unknown.get(key)) is not None:
            raise Refused(401, sentence)
        caller = self._known.get(key)
        if caller is None:
            return None
        if (sentence := self._forbidden.get((caller, wanted))) is not None:
            raise Refused(403, sentence, caller.name)
        return caller if self._allowed.get((caller, wanted)) else None

    async def _asked(self, key: bytes, token: str, wanted: Wanted) -> Caller:
        caller = self._known.get(key)
        if caller is None:
            caller = await self._named(key, token)
        if refusal := await self._callers.refusal(caller, wanted):
            self._forbidden.keep((caller, wanted), refusal)
            raise Refused(403, refusal, caller.name)
        self._allowed.keep((caller, wanted), True)
        return caller

    async def _named(self, key: bytes, token: str) -> Caller:
        caller = await self._whose(token)
        if caller is None:
            self._unknown.keep(key, UNKNOWN)
            raise Refused(401, UNKNOWN)
        self._known.keep(key, caller)
        return caller

    async def _whose(self, token: str) -> Caller | None:
        """For the API server's own audiences, as whoever names none gets them."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        reply = await self._client.transport.send(Call("POST", REVIEWS, body=msgspec.json.encode(review), patience=PATIENCE))
        if reply.status >= 400:
            raise error_from(reply.status, reply.body)
        status = msgspec.json.decode(reply.body, type=_Review).status
        user = status.user
        if not status.authenticated or not user.username:
            return None
        return Caller(user.username, user.groups, user.uid, tuple(sorted(user.extra.items())))


def bearer(authorization: str) -> str:
    """The token in what a request says of whose it is; empty where there is none. aiohttp takes no header of more than 8 KiB."""
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.isascii() else ""
