"""Rules for nodes, namespaces and events."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.placement import EFFECTS
from herder.api.builtin.resources import check_amount
from herder.api.builtin.semantics import Document, Problems, refuse_change, refuse_names, section
from herder.api.problems import DUPLICATE, Problem, duplicate, forbidden, invalid, not_supported, required, shown

_EVENT_LIMIT: Final = 128
_FIXED_IN_EVENTS: Final = (
    *("regarding", "reason", "note", "type", "action", "related", "reportingController", "reportingInstance"),
    *("eventTime", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount"),
)
_INTERNAL_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}


def validate_node(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), False, names.name_is_subdomain, out)
    _check_node(obj, out)
    ranges: Sequence[str] = section(obj, "spec").get("podCIDRs") or ()
    for index, text in enumerate(ranges):
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            out.append(invalid(f"spec.podCIDRs[{index}]", text, detail))
    if len(ranges) > 2 or (len(ranges) == 2 and (":" in ranges[0]) == (":" in ranges[1])):
        out.append(invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family"))


def _check_node(obj: Document, out: Problems) -> None:
    _check_taints(section(obj, "spec").get("taints") or (), "metadata.taints", out)
    for part in ("capacity", "allocatable"):
        for resource, value in section(section(obj, "status"), part).items():
            check_amount(resource, value, f"status.{part}.{resource}", out)


def _check_taints(taints: Sequence[Document], field: str, out: Problems) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here = f"{field}[{index}]"
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        refuse_names(names.label_key(key), f"{here}.key", key, out)
        complaints = names.label_value(taint.get("value") or "")
        if complaints:
            out.append(invalid(f"{here}.value", taint.get("value"), ";".join(complaints)))
        if not effect:
            out.append(required(f"{here}.effect"))
        elif effect not in EFFECTS:
            out.append(not_supported(f"{here}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            words = "taints must be unique by key and effect pair"
            out.append(Problem(here, DUPLICATE, f"Duplicate value: {shown(taint)}: {words}"))
        seen.add((key, effect))


def validate_node_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    validate_node(new, out)
    spec, before = section(new, "spec"), section(old, "spec")
    for index, address in enumerate(addresses := section(new, "status").get("addresses") or ()):
        if address in addresses[:index]:
            out.append(duplicate(f"status.addresses[{index}]", address))
    if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        out.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        out.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))


def validate_namespace(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), False, names.name_is_label, out)
    for finalizer in section(obj, "spec").get("finalizers") or ():
        complaints = names.qualified_name(finalizer)
        refuse_names(complaints, "spec.finalizers", finalizer, out)
        if "/" not in finalizer and finalizer not in ("kubernetes", "orphan", "foregroundDeletion"):
            out.append(invalid("spec.finalizers", finalizer, "name is neither a standard finalizer name nor is it fully qualified"))


def validate_namespace_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    validate_namespace(new, out)


def validate_event(obj: Document, out: Problems) -> None:
    """Of the core group, where little is demanded."""
    _check_event(obj, "involvedObject", "reportingComponent", "message", out)
    if not out:
        validate_meta(section(obj, "metadata"), True, names.name_is_path_segment, out)


def validate_new_event(obj: Document, out: Problems) -> None:
    """Of events.k8s.io, where the old fields must stay empty."""
    _check_event(obj, "regarding", "reportingController", "note", out)
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)
    if not obj.get("eventTime"):
        out.append(required("eventTime"))
    if obj.get("type") not in ("Normal", "Warning"):
        out.append(invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
    for name in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount", "deprecatedSource"):
        if obj.get(name):
            out.append(invalid(_INTERNAL_NAMES[name], "", "needs to be unset"))
    _check_series(obj, out)


def _check_series(obj: Document, out: Problems) -> None:
    series = obj.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        out.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        out.append(required("series.lastObservedTime"))


def _check_event(obj: Document, about: str, reporter: str, text: str, out: Problems) -> None:
    namespace = section(obj, "metadata").get("namespace") or ""
    about_namespace = section(obj, about).get("namespace") or ""
    if obj.get("eventTime"):
        if not about_namespace and namespace not in ("default", "kube-system"):
            out.append(invalid("involvedObject.namespace", about_namespace, "does not match event.namespace"))
        _check_new_fields(obj, reporter, text, out)
    elif (about_namespace or "default") != (namespace or "default"):
        out.append(invalid("involvedObject.namespace", about_namespace, "does not match event.namespace"))
    refuse_names(names.dns_subdomain(namespace), "namespace", namespace, out)


def _check_new_fields(obj: Document, reporter: str, text: str, out: Problems) -> None:
    if not obj.get(reporter):
        out.append(required(reporter))
    refuse_names(names.qualified_name(obj.get(reporter) or ""), reporter, obj.get(reporter) or "", out)
    for name in ("reportingInstance", "action", "reason"):
        value = obj.get(name) or ""
        if not value:
            out.append(required(name))
        if names.length(value) > _EVENT_LIMIT:
            out.append(invalid(name, "", f"can have at most {_EVENT_LIMIT} characters"))
    if names.length(obj.get(text) or "") > 1024:
        out.append(invalid("message", "", "can have at most 1024 characters"))


def validate_event_update(new: Document, old: Document, out: Problems) -> None:
    validate_event(new, out)
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)


def validate_new_event_update(new: Document, old: Document, out: Problems) -> None:
    _check_event(new, "regarding", "reportingController", "note", out)
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    if new.get("series") != old.get("series"):
        _check_series(new, out)
    for name in _FIXED_IN_EVENTS:
        refuse_change(new.get(name), old.get(name), _INTERNAL_NAMES.get(name, name), out)
