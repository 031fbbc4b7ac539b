"""Rules for where a pod may go: affinity, tolerations, spreading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from herder.api import names
from herder.api.builtin.semantics import Document, Problems, refuse_names
from herder.api.problems import duplicate, forbidden, invalid, not_supported, required
from herder.api.selectors import validate_label_selector

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_ALL_KEYS: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def check_affinity(affinity: Document, field: str, out: Problems) -> None:
    nodes = affinity.get("nodeAffinity")
    if nodes is not None:
        here = f"{field}.nodeAffinity"
        if nodes.get(_REQUIRED) is not None:
            check_node_selector(nodes[_REQUIRED], f"{here}.{_REQUIRED}", out)
        for index, term in enumerate(nodes.get(_PREFERRED) or ()):
            at = f"{here}.{_PREFERRED}[{index}]"
            _check_weight(term, at, out)
            _check_node_term(term.get("preference") or {}, f"{at}.preference", out, values_too=False)
    for name in ("podAffinity", "podAntiAffinity"):
        if affinity.get(name) is not None:
            _check_pod_affinity(affinity[name], f"{field}.{name}", out)


def check_node_selector(selector: Document, field: str, out: Problems) -> None:
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        out.append(required(f"{field}.nodeSelectorTerms", "must have at least one node selector term"))
    for index, term in enumerate(terms):
        _check_node_term(term, f"{field}.nodeSelectorTerms[{index}]", out, values_too=True)


def _check_weight(term: Document, field: str, out: Problems) -> None:
    weight = term.get("weight", 0)
    if not 1 <= weight <= 100:
        out.append(invalid(f"{field}.weight", weight, "must be in the range 1-100"))


def _check_node_term(term: Document, field: str, out: Problems, values_too: bool) -> None:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        _check_expression(expression, f"{field}.matchExpressions[{index}]", out, values_too)
    for index, expression in enumerate(term.get("matchFields") or ()):
        _check_field_expression(expression, f"{field}.matchFields[{index}]", out)


def _check_expression(expression: Document, field: str, out: Problems, values_too: bool) -> None:
    values: Sequence[str] = expression.get("values") or ()
    match expression.get("operator"):
        case "In" | "NotIn":
            if not values:
                out.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist":
            if values:
                out.append(forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
        case "Gt" | "Lt":
            if len(values) != 1:
                out.append(required(f"{field}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
        case operator:
            out.append(invalid(f"{field}.operator", operator or "", "not a valid selector operator"))
    refuse_names(names.label_key(expression.get("key", "")), f"{field}.key", expression.get("key", ""), out)
    if values_too:
        for index, value in enumerate(values):
            refuse_names(names.label_value(value), f"{field}.values[{index}]", value, out)


def _check_field_expression(expression: Document, field: str, out: Problems) -> None:
    values: Sequence[str] = expression.get("values") or ()
    if expression.get("operator") not in ("In", "NotIn"):
        out.append(invalid(f"{field}.operator", expression.get("operator", ""), "not a valid selector operator"))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        out.append(required(f"{field}.values", detail))
    if expression.get("key") != "metadata.name":
        out.append(invalid(f"{field}.key", expression.get("key", ""), "not a valid field selector key"))
    else:
        for index, value in enumerate(values):
            refuse_names(names.dns_subdomain(value), f"{field}.values[{index}]", value, out)


def _check_pod_affinity(affinity: Document, field: str, out: Problems) -> None:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        _check_pod_term(term, f"{field}.{_REQUIRED}[{index}]", out)
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{field}.{_PREFERRED}[{index}]"
        _check_weight(term, here, out)
        _check_pod_term(term.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm", out)


def _check_pod_term(term: Document, field: str, out: Problems) -> None:
    for name in ("labelSelector", "namespaceSelector"):
        out += validate_label_selector(term.get(name), f"{field}.{name}")
    for namespace in term.get("namespaces") or ():
        refuse_names(names.dns_label(namespace), f"{field}.namespace", namespace, out)
    if not term.get("topologyKey"):
        out.append(required(f"{field}.topologyKey", "can not be empty"))
    refuse_names(names.label_key(term.get("topologyKey", "")), f"{field}.topologyKey", term.get("topologyKey", ""), out)


def check_tolerations(tolerations: Sequence[Document], field: str, out: Problems) -> None:
    for index, toleration in enumerate(tolerations):
        _check_toleration(toleration, f"{field}[{index}]", out)


def _check_toleration(toleration: Document, field: str, out: Problems) -> None:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        refuse_names(names.label_key(key), f"{field}.key", key, out)
    elif operator != "Exists":
        out.append(invalid(f"{field}.operator", operator, _ALL_KEYS))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        out.append(invalid(f"{field}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    if operator in ("Equal", ""):
        complaints = names.label_value(value)
        if complaints:
            out.append(invalid(f"{field}.operator", value, ";".join(complaints)))
    elif operator == "Exists":
        if value:
            out.append(invalid(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'"))
    elif operator in ("Lt", "Gt"):  # known, but behind a gate that is closed by default
        out.append(not_supported(f"{field}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
    else:
        out.append(not_supported(f"{field}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in EFFECTS:
        out.append(not_supported(f"{field}.effect", effect, EFFECTS))


def check_spreading(constraints: Sequence[Document], field: str, out: Problems) -> None:
    seen: set[tuple[str, str]] = set()
    for index, constraint in reversed(list(enumerate(constraints))):
        _check_constraint(constraint, f"{field}[{index}]", out)
        pair = (constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", ""))
        if pair in seen:
            out.append(duplicate(f"{field}[{index}].{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}"))
        seen.add(pair)


def _check_constraint(constraint: Document, field: str, out: Problems) -> None:
    action = constraint.get("whenUnsatisfiable", "")
    if constraint.get("maxSkew", 0) <= 0:
        out.append(invalid(f"{field}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero"))
    if not constraint.get("topologyKey"):
        out.append(required(f"{field}.topologyKey", "can not be empty"))
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        out.append(not_supported(f"{field}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            out.append(invalid(f"{field}.minDomains", domains, "must be greater than zero"))
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            out.append(invalid(f"{field}.minDomains", domains, detail))
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(name) is not None and constraint[name] not in ("Honor", "Ignore"):
            out.append(not_supported(f"{field}.{name}", constraint[name], ("Honor", "Ignore")))
    out += validate_label_selector(constraint.get("labelSelector"), f"{field}.labelSelector")
