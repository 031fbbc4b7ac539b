"""The one place that knows who somebody is and what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from herder.api.world import World
from herder.server.access.accounts import Accounts, InvalidToken
from herder.server.access.attributes import Attributes, attributes_of, forbidden
from herder.server.access.escalation import Guard
from herder.server.access.impersonation import impersonated
from herder.server.access.nodes.authorizer import NodeAuthorizer
from herder.server.access.nodes.identity import node_of
from herder.server.access.nodes.placed import PlacedPods
from herder.server.access.nodes.restriction import NodeRestriction
from herder.server.access.rbac import Decision, Rbac
from herder.server.access.reserved import ReservedAnnotations
from herder.server.access.tokens import Signer
from herder.server.request import ANONYMOUS, MASTERS, Request, Target, User
from herder.server.served import Served
from herder.server.status import unauthorized
from herder.server.store import Store

# For load balancers, and while the engine starts: whatever the roles say.
ALWAYS_OPEN = frozenset({"/healthz", "/livez", "/readyz"})
# What is answered even when too much is going on.
PUBLIC_PATHS = ALWAYS_OPEN | {"/version", "/version/"}
ALLOWED = Decision(True)
Document = dict[str, Any]


class Access:
    def __init__(self, store: Store, world: World, signer: Signer) -> None:
        self.rbac = Rbac(store)
        self.accounts = Accounts(store, world, signer)
        pods = PlacedPods(store)
        self.nodes = NodeAuthorizer(pods)
        self.restriction = NodeRestriction(store)
        self.reserved = ReservedAnnotations(self.allows)
        self.guard = Guard(self.rbac, self.allows)

    # --- who it is ---------------------------------------------------------------------------------------------------------------

    def identify(self, known: User | None, authorization: str | None) -> User:
        """By what the connection has shown (`known`), else by the token of the request, else nobody."""
        if known is not None:
            return known
        token = _bearer(authorization)
        if not token:
            return ANONYMOUS
        try:
            return self.accounts.identify(token)[0]
        except InvalidToken:
            # Whoever tries gets no hint.
            raise unauthorized() from None

    def impersonated(self, user: User, headers: Mapping[str, str]) -> User:
        return impersonated(user, headers, self.require)

    # --- what they may write ------------------------------------------------------------------------------------------------------

    def restrict(self, served: Served, new: Document, old: Document | None, user: User, subresource: str) -> None:
        """Refuses what they may not make of an object that they may write."""
        self.restriction.check_write(served, new, old, user, subresource)
        self.reserved.check_write(served, new, old, user)

    # --- what they may do --------------------------------------------------------------------------------------------------------

    def decide(self, user: User, what: Attributes) -> Decision:
        if MASTERS in user.groups or what.path in ALWAYS_OPEN:
            return ALLOWED
        node = node_of(user)
        if node is None:
            return self.rbac.decide(user, what)
        first = self.nodes.decide(node, what)
        return first if first.allowed else _later(first, self.rbac.decide(user, what))

    def allows(self, user: User, what: Attributes) -> bool:
        return self.decide(user, what).allowed

    def require(self, user: User, what: Attributes) -> None:
        decision = self.decide(user, what)
        if not decision.allowed:
            raise forbidden(user, what, decision.reason)

    def authorize(self, request: Request, target: Target | None, verb: str = "") -> None:
        """Refuses what the request may not do. `verb` where it is another than the method says: a PUT or an apply that would
        create has to be allowed to create, too."""
        if MASTERS not in request.user.groups:
            self.require(request.user, attributes_of(request, target, verb))


def _later(first: Decision, second: Decision) -> Decision:
    """Where both refuse, both say why."""
    if second.allowed:
        return second
    return Decision(False, "\n".join(reason for reason in (first.reason, second.reason) if reason))


def _bearer(authorization: str | None) -> str:
    """The token of an `Authorization` header. Other schemes are not known, and so say nothing about who it is."""
    parts = (authorization or "").strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""
