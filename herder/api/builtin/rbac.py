"""Rules for roles and their bindings."""

from __future__ import annotations

from typing import Final

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.semantics import Document, Problems, refuse_names, same, section
from herder.api.problems import invalid, not_supported, required
from herder.api.selectors import validate_label_selector

_GROUP: Final = "rbac.authorization.k8s.io"


def validate_role(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_path_segment, out)
    _check_rules(obj, True, out)


def validate_cluster_role(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), False, names.name_is_path_segment, out)
    _check_rules(obj, False, out)
    aggregation = obj.get("aggregationRule")
    if aggregation is None:
        return
    selectors = aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        out.append(required("aggregationRule.clusterRoleSelectors", detail))
    for index, selector in enumerate(selectors):
        here = f"aggregationRule.clusterRoleSelectors[{index}]"
        found = validate_label_selector(selector, here)
        out += [*found, invalid(here, None, "invalid label selector.")] if found else []


def _check_rules(obj: Document, namespaced: bool, out: Problems) -> None:
    for index, rule in enumerate(obj.get("rules") or ()):
        _check_rule(rule, namespaced, f"rules[{index}]", out)


def _check_rule(rule: Document, namespaced: bool, field: str, out: Problems) -> None:
    if not rule.get("verbs"):
        out.append(required(f"{field}.verbs", "verbs must contain at least one value"))
    addresses = rule.get("nonResourceURLs")
    if addresses:
        if namespaced:
            out.append(invalid(f"{field}.nonResourceURLs", addresses, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            out.append(invalid(f"{field}.nonResourceURLs", addresses, detail))
        return
    if not rule.get("apiGroups"):
        out.append(required(f"{field}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        out.append(required(f"{field}.resources", "resource rules must supply at least one resource"))


def validate_role_update(new: Document, old: Document, out: Problems) -> None:
    validate_role(new, out)
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)


def validate_cluster_role_update(new: Document, old: Document, out: Problems) -> None:
    validate_cluster_role(new, out)
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)


def validate_role_binding(obj: Document, out: Problems) -> None:
    _check_binding(obj, True, ("Role", "ClusterRole"), out)


def validate_cluster_role_binding(obj: Document, out: Problems) -> None:
    _check_binding(obj, False, ("ClusterRole",), out)


def _check_binding(obj: Document, namespaced: bool, kinds: tuple[str, ...], out: Problems) -> None:
    validate_meta(section(obj, "metadata"), namespaced, names.name_is_path_segment, out)
    role = section(obj, "roleRef")
    if role.get("apiGroup") != _GROUP:
        out.append(not_supported("roleRef.apiGroup", role.get("apiGroup", ""), (_GROUP,)))
    if role.get("kind") not in kinds:
        out.append(not_supported("roleRef.kind", role.get("kind", ""), kinds))
    name = role.get("name") or ""
    if not name:
        out.append(required("roleRef.name"))
    else:
        refuse_names(names.path_segment(name), "roleRef.name", name, out)
    for index, subject in enumerate(obj.get("subjects") or ()):
        _check_subject(subject, namespaced, f"subjects[{index}]", out)


def _check_subject(subject: Document, namespaced: bool, field: str, out: Problems) -> None:
    name, group = subject.get("name") or "", subject.get("apiGroup") or ""
    if not name:
        out.append(required(f"{field}.name"))
    match subject.get("kind"):
        case "ServiceAccount":
            if name:
                refuse_names(names.dns_subdomain(name), f"{field}.name", name, out)
            if group:
                out.append(not_supported(f"{field}.apiGroup", group, ("",)))
            if not namespaced and not subject.get("namespace"):
                out.append(required(f"{field}.namespace"))
        case "User" | "Group":
            if group != _GROUP:
                out.append(not_supported(f"{field}.apiGroup", group, (_GROUP,)))
        case kind:
            out.append(not_supported(f"{field}.kind", kind or "", ("ServiceAccount", "User", "Group")))


def validate_role_binding_update(new: Document, old: Document, out: Problems) -> None:
    validate_role_binding(new, out)
    _check_binding_update(new, old, out)


def validate_cluster_role_binding_update(new: Document, old: Document, out: Problems) -> None:
    validate_cluster_role_binding(new, out)
    _check_binding_update(new, old, out)


def _check_binding_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    if not same(new.get("roleRef"), old.get("roleRef")):
        out.append(invalid("roleRef", new.get("roleRef"), "cannot change roleRef"))
