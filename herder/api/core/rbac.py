"""Who may do what: roles and their bindings."""

from __future__ import annotations

from msgspec import field

from herder.api.core.base import Object
from herder.api.meta import LabelSelector
from herder.api.views import View


class PolicyRule(View, frozen=True, kw_only=True):
    verbs: tuple[str, ...] | None = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = field(default=(), name="nonResourceURLs")


class AggregationRule(View, frozen=True, kw_only=True):
    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class Role(Object, frozen=True, kw_only=True):
    """An empty role has `rules: null` on a real API server."""

    rules: tuple[PolicyRule, ...] | None = ()


class ClusterRole(Object, frozen=True, kw_only=True):
    rules: tuple[PolicyRule, ...] | None = ()
    aggregation_rule: AggregationRule | None = None


class Subject(View, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    namespace: str = ""
    api_group: str = ""


class RoleRef(View, frozen=True, kw_only=True):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class RoleBinding(Object, frozen=True, kw_only=True):
    subjects: tuple[Subject, ...] = ()
    role_ref: RoleRef = RoleRef()


class ClusterRoleBinding(Object, frozen=True, kw_only=True):
    subjects: tuple[Subject, ...] = ()
    role_ref: RoleRef = RoleRef()
