"""From a token to the ServiceAccount that it stands for, checked against what is there now."""

from __future__ import annotations

from datetime import datetime

from herder.api.world import World
from herder.server.access.tokens import Claims, Named, Signer
from herder.server.request import AUTHENTICATED, User
from herder.server.store import Record, Store
from herder.server.store.records import key_of

ISSUER = "https://kubernetes.default.svc"
AUDIENCES = (ISSUER,)
# Machines' clocks disagree a little.
LEEWAY = 60
ABOUT = "authentication.kubernetes.io"


class InvalidToken(Exception):
    """Why a token is good for nothing (any more)."""


def account_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


class Accounts:
    def __init__(self, store: Store, world: World, signer: Signer) -> None:
        self._store = store
        self._world = world
        self.signer = signer

    def identify(self, token: str, audiences: tuple[str, ...] = AUDIENCES) -> tuple[User, tuple[str, ...]]:
        """Who shows this token, and for which of the audiences it was made."""
        claims = self.signer.read(token)
        if claims is None or claims.iss != ISSUER:
            raise InvalidToken("invalid bearer token")
        meant = tuple(one for one in claims.aud if one in audiences)
        if not meant:
            raise InvalidToken(f"token audiences {list(claims.aud)} is invalid for the target audiences {list(audiences)}")
        self._check_time(claims)
        self._check_objects(claims)
        return _user(claims), meant

    def _check_time(self, claims: Claims) -> None:
        now = self._world.now()
        if now - LEEWAY > claims.exp:
            raise InvalidToken("service account token has expired")
        if now + LEEWAY < claims.nbf or now + LEEWAY < claims.iat:
            raise InvalidToken("service account token is not valid yet")

    def _check_objects(self, claims: Claims) -> None:
        bound = claims.bound
        self._check("serviceaccounts", bound.namespace, bound.serviceaccount)
        if bound.pod is not None:
            self._check("pods", bound.namespace, bound.pod)
        elif bound.node is not None:
            self._check("nodes", "", bound.node)
        if bound.secret is not None:
            self._check("secrets", bound.namespace, bound.secret)

    def _check(self, table: str, namespace: str, wanted: Named) -> None:
        record = self._store.get(table, key_of(namespace, wanted.name))
        if record is None:
            raise InvalidToken(f'service account token has been invalidated: {table} "{wanted.name}" not found')
        if record.uid != wanted.uid:
            raise InvalidToken(f'service account token has been invalidated: {table} "{wanted.name}" is another one now')
        if record.terminating and self._long_deleted(record):
            raise InvalidToken(f'service account token has been invalidated: {table} "{wanted.name}" is deleted')

    def _long_deleted(self, record: Record) -> bool:
        deleted = datetime.fromisoformat(record.document()["metadata"]["deletionTimestamp"])
        return deleted.timestamp() < self._world.now() - LEEWAY


def _user(claims: Claims) -> User:
    bound = claims.bound
    extra = {f"{ABOUT}/credential-id": (f"JTI={claims.jti}",)}
    for kind, one in (("pod", bound.pod), ("node", bound.node)):
        if one is not None:
            extra[f"{ABOUT}/{kind}-name"] = (one.name,)
            if one.uid:
                extra[f"{ABOUT}/{kind}-uid"] = (one.uid,)
    name = account_name(bound.namespace, bound.serviceaccount.name)
    return User(name, (*account_groups(bound.namespace), AUTHENTICATED), bound.serviceaccount.uid, extra)
