"""Rules for disruption budgets, priority classes and leases."""

from __future__ import annotations

from typing import Final

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.pods import check_preemption_policy
from herder.api.builtin.semantics import Document, Problems, refuse_change, section
from herder.api.int_or_percent import validate_at_most_hundred_percent, validate_int_or_percent
from herder.api.problems import forbidden, invalid, not_supported
from herder.api.selectors import validate_label_selector

_HIGHEST: Final = 1_000_000_000
_SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_EVICTION: Final = ("AlwaysAllow", "IfHealthyBudget")


def validate_budget(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_path_segment, out)
    _check_budget_spec(section(obj, "spec"), out)


def _check_budget_spec(spec: Document, out: Problems) -> None:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        out.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for name in ("minAvailable", "maxUnavailable"):
        if spec.get(name) is not None:
            out += validate_int_or_percent(spec[name], f"spec.{name}")
            out += validate_at_most_hundred_percent(spec[name], f"spec.{name}")
    out += validate_label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION:
        out.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION))


def validate_budget_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    validate_budget(new, out)


def validate_priority_class(obj: Document, out: Problems) -> None:
    meta = section(obj, "metadata")
    validate_meta(meta, False, names.name_is_subdomain, out)
    name, value = meta.get("name") or "", obj.get("value", 0)
    if name.startswith("system-"):
        _check_system_class(name, value, bool(obj.get("globalDefault")), out)
    elif value > _HIGHEST:
        out.append(forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}"))
    if obj.get("preemptionPolicy") is not None:
        check_preemption_policy(obj["preemptionPolicy"], "preemptionPolicy", out)


def _check_system_class(name: str, value: int, default: bool, out: Problems) -> None:
    known = _SYSTEM.get(name)
    if known is None:
        problem = f"{name} is not a known system priority class"
    elif value != known:
        problem = f"value of {name} PriorityClass must be {known}"
    elif default:
        problem = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    words = "priority class names with 'system-' prefix are reserved for system use only. error:"
    out.append(forbidden("metadata.name", f"{words} {problem}"))


def validate_priority_class_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    if new.get("value", 0) != old.get("value", 0):
        out.append(forbidden("value", "may not be changed in an update."))
    refuse_change(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy", out)


def validate_lease(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)
    _check_lease_spec(section(obj, "spec"), out)


def validate_lease_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    _check_lease_spec(section(new, "spec"), out)


def _check_lease_spec(spec: Document, out: Problems) -> None:
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        out.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        out.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    if spec.get("preferredHolder") and not spec.get("strategy"):
        out.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
