"""Nobody can give more than they have: writes to roles and bindings are weighed against what their writer may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from herder.api.problems import not_supported
from herder.server.access.attributes import Attributes
from herder.server.access.comparing import MOST_COMPARED, TooManyPieces, missing
from herder.server.access.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, ROLE_BINDINGS, ROLES, Rbac
from herder.server.access.rules import Rule, quoted, read_rules
from herder.server.metadata import same_but_for_version
from herder.server.request import MASTERS, User
from herder.server.served import Served
from herder.server.status import ApiError, forbidden, invalid

Document = dict[str, Any]
GUARDED = frozenset({ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS})
FULL_AUTHORITY = (Rule(("*",), ("*",), ("*",)), Rule(("*",), paths=("*",)))
# What the garbage collector has to be able to change of anything.
COLLECTED = ("ownerReferences", "finalizers", "managedFields")
Allowed = Callable[[User, Attributes], bool]


class Guard:
    def __init__(self, rbac: Rbac, allowed: Allowed) -> None:
        self._rbac = rbac
        self._allowed = allowed

    def __call__(self, served: Served, new: Document, old: Document | None, user: User) -> None:
        """Refuses a role or a binding that would give what its writer does not have."""
        if served.table not in GUARDED or MASTERS in user.groups:
            return
        if old is not None and _only_collected(new, old):
            return
        if served.table in (ROLES, CLUSTER_ROLES):
            self._check_role(served, new, old, user)
        else:
            self._check_binding(served, new, user)

    def _check_role(self, served: Served, new: Document, old: Document | None, user: User) -> None:
        metadata = new["metadata"]
        namespace = metadata.get("namespace", "")
        name = metadata["name"] if old is not None else ""
        if self._allowed(user, Attributes("escalate", "", GROUP, served.resource.plural, "", namespace, name)):
            return
        self._check_held(served, metadata.get("name", ""), namespace, read_rules(new.get("rules")), user)
        gathers = _aggregates(new) or (old is not None and _aggregates(old))
        # It can gather anything.
        if gathers and missing(self._rbac.rules_for(user, namespace), FULL_AUTHORITY).amount:
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(served.resource, metadata.get("name", ""), why)

    def _check_binding(self, served: Served, new: Document, user: User) -> None:
        metadata = new["metadata"]
        namespace = metadata.get("namespace", "")
        role: Document = new.get("roleRef") or {}
        kind, name = role.get("kind", ""), role.get("name", "")
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
        if plural is None:
            raise invalid(served.resource, metadata.get("name", ""), [not_supported("roleRef.kind", kind, ("Role", "ClusterRole"))])
        if self._allowed(user, Attributes("bind", "", role.get("apiGroup", ""), plural, "", namespace, name)):
            return
        rules = self._rbac.rules_of(kind, name, namespace)
        if rules is None:
            details = {"name": name, "group": GROUP, "kind": plural}
            raise ApiError(404, "NotFound", f'{plural}.{GROUP} "{name}" not found', details)
        self._check_held(served, metadata.get("name", ""), namespace, rules, user)

    def _check_held(self, served: Served, name: str, namespace: str, rules: tuple[Rule, ...], user: User) -> None:
        try:
            lacking = missing(self._rbac.rules_for(user, namespace), rules)
        except TooManyPieces:
            why = f"rules: with what you hold they make more than {MOST_COMPARED} combinations to compare; write fewer at once"
            raise forbidden(served.resource, name, why) from None
        if lacking.amount:
            who = f'user "{user.name}" (groups={quoted(user.groups)})'
            why = f"{who} is attempting to grant RBAC permissions not currently held:\n{lacking.told()}"
            raise forbidden(served.resource, name, why)


def _aggregates(role: Document) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(new: Document, old: Document) -> bool:
    def bare(document: Document) -> Document:
        return {**document, "metadata": {key: value for key, value in document["metadata"].items() if key not in COLLECTED}}

    return same_but_for_version(bare(new), bare(old))
