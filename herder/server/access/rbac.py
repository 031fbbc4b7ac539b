"""Roles and bindings as they are in the store, kept ready for decisions. A change counts before its writer hears of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from herder.server.access.attributes import Attributes
from herder.server.access.rules import Grants, Rule, read_rules, slots_of
from herder.server.request import User
from herder.server.store import DELETED, Change, Record, Store

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"roles.{GROUP}", f"clusterroles.{GROUP}"
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}"
ACCOUNT_PREFIX = "system:serviceaccount:"
# People and programs, times the namespaces that they work in. More than that are simply looked up anew.
MOST_REMEMBERED = 20_000
LONGEST_REMEMBERED = 2048

Document = dict[str, Any]
# A namespace ("" for everywhere) and who: a user or a group.
Subject = tuple[str, str, str]


class Role(NamedTuple):
    rules: tuple[Rule, ...]
    grants: Grants


class Binding(NamedTuple):
    name: str
    namespace: str
    role_kind: str
    role_name: str


class Share(NamedTuple):
    """One subject's part in a binding. `order` is its place among the binding's subjects."""

    binding: Binding
    order: int
    told: str


class Held(NamedTuple):
    """A role that somebody has, and by what."""

    role: Role
    source: str


class Holdings(NamedTuple):
    roles: tuple[Held, ...]
    problems: tuple[str, ...]


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""


class Rbac:
    def __init__(self, store: Store) -> None:
        self._roles: dict[tuple[str, str], Role] = {}
        self._shares: dict[Subject, dict[str, Share]] = {}
        self._subjects: dict[tuple[str, str], tuple[Subject, ...]] = {}
        self._remembered: dict[tuple[str, tuple[str, ...], str], Holdings] = {}
        for table in (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            for record in store.scan(table):
                self._put(table, record)
            store.listen(table, self._on_change)

    # --- following the store -----------------------------------------------------------------------------------------------------

    def _on_change(self, change: Change) -> None:
        self._remembered.clear()
        if change.kind == DELETED:
            self._remove(change.table, change.record)
        else:
            self._put(change.table, change.record)

    def _put(self, table: str, record: Record) -> None:
        document = record.document()
        if table in (ROLES, CLUSTER_ROLES):
            rules = read_rules(document.get("rules"))
            self._roles[record.namespace, record.name] = Role(rules, Grants(rules))
        else:
            self._unbind(table, record.key)
            self._bind(table, record, document)

    def _remove(self, table: str, record: Record) -> None:
        if table in (ROLES, CLUSTER_ROLES):
            self._roles.pop((record.namespace, record.name), None)
        else:
            self._unbind(table, record.key)

    def _bind(self, table: str, record: Record, document: Document) -> None:
        role: Document = document.get("roleRef") or {}
        binding = Binding(record.name, record.namespace, role.get("kind", ""), role.get("name", ""))
        found: dict[Subject, None] = {}
        for order, document_of in enumerate(document.get("subjects") or ()):
            subject = _subject(record.namespace, document_of or {})
            if subject is not None and subject not in found:
                found[subject] = None
                share = Share(binding, order, _told(record.namespace, document_of))
                self._shares.setdefault(subject, {})[record.key] = share
        self._subjects[table, record.key] = tuple(found)

    def _unbind(self, table: str, key: str) -> None:
        for subject in self._subjects.pop((table, key), ()):
            shares = self._shares[subject]
            del shares[key]
            if not shares:
                del self._shares[subject]

    # --- deciding ----------------------------------------------------------------------------------------------------------------

    def decide(self, user: User, what: Attributes) -> Decision:
        everywhere = self.holdings(user, "")
        here = self.holdings(user, what.namespace) if what.namespace else None
        if what.path:
            for held in everywhere.roles:
                if held.role.grants.allow_path(what.verb, what.path):
                    return Decision(True, held.source)
        else:
            slots = slots_of(what.verb, what.group, what.resource, what.subresource)
            for held in (*everywhere.roles, *here.roles) if here else everywhere.roles:
                if held.role.grants.allow(slots, what.name):
                    return Decision(True, held.source)
        return Decision(False, _refusal((*everywhere.problems, *(here.problems if here else ()))))

    def rules_for(self, user: User, namespace: str) -> list[Rule]:
        """Everything that somebody may do in a namespace, or with "" what they may do everywhere."""
        held = self.holdings(user, "").roles
        if namespace:
            held = (*held, *self.holdings(user, namespace).roles)
        return [rule for one in held for rule in one.role.rules]

    def rules_of(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a role as a binding in this namespace names it; None where there is no such role."""
        role = self._roles.get((namespace if kind == "Role" else "", name)) if kind in ("Role", "ClusterRole") else None
        return role.rules if role else None

    def holdings(self, user: User, namespace: str) -> Holdings:
        """What a user has through the bindings of one namespace, or with "" through those for everywhere."""
        key = (user.name, user.groups, namespace)
        found = self._remembered.get(key)
        if found is None:
            found = self._find(user, namespace)
            if _is_worth_remembering(user, namespace):
                if len(self._remembered) >= MOST_REMEMBERED:
                    self._remembered.clear()
                self._remembered[key] = found
        return found

    def _find(self, user: User, namespace: str) -> Holdings:
        shares: dict[str, Share] = {}
        for subject in [(namespace, "User", user.name), *((namespace, "Group", group) for group in user.groups)]:
            for key, share in self._shares.get(subject, {}).items():
                if key not in shares or share.order < shares[key].order:
                    shares[key] = share
        roles: list[Held] = []
        problems: list[str] = []
        for _, share in sorted(shares.items()):
            binding = share.binding
            role = self._roles.get((binding.namespace if binding.role_kind == "Role" else "", binding.role_name))
            if role is None:
                problems.append(f'{binding.role_kind.lower()}.{GROUP} "{binding.role_name}" not found')
            else:
                roles.append(Held(role, f"RBAC: allowed by {_source(share)}"))
        return Holdings(tuple(roles), tuple(problems))


def _is_worth_remembering(user: User, namespace: str) -> bool:
    """Reviews ask about whomever and wherever their sender likes, in megabytes. Real names are short, and people in few groups."""
    return len(user.name) + len(namespace) + len(user.groups) + sum(map(len, user.groups)) <= LONGEST_REMEMBERED


def _subject(namespace: str, document: Document) -> Subject | None:
    kind, name = document.get("kind", ""), document.get("name", "")
    if kind in ("User", "Group"):
        return (namespace, kind, name)
    where = document.get("namespace") or namespace
    if kind == "ServiceAccount" and where:
        return (namespace, "User", f"{ACCOUNT_PREFIX}{where}:{name}")
    return None


def _told(namespace: str, document: Document) -> str:
    kind, name = document.get("kind", ""), document.get("name", "")
    shown = f"{name}/{document.get('namespace') or namespace}" if kind == "ServiceAccount" else name
    return f"{kind} {msgspec.json.encode(shown).decode()}"


def _source(share: Share) -> str:
    binding = share.binding
    kind = "RoleBinding" if binding.namespace else "ClusterRoleBinding"
    name = f"{binding.name}/{binding.namespace}" if binding.namespace else binding.name
    return f'{kind} "{name}" of {binding.role_kind} "{binding.role_name}" to {share.told}'


def _refusal(problems: tuple[str, ...]) -> str:
    """Why nothing was found, where a binding points at a role that is not there."""
    unique = tuple(dict.fromkeys(problems))
    if not unique:
        return ""
    return f"RBAC: {unique[0]}" if len(unique) == 1 else f"RBAC: [{', '.join(unique)}]"
