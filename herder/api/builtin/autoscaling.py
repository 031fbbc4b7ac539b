"""Rules and defaults of HorizontalPodAutoscalers.

Metrics are of the type Resource alone: there is nobody here who could answer for the other types. Kubernetes has no bound on how
many metrics and policies there are; each is looked at every 15 seconds, so here there is one.
"""

from __future__ import annotations

from typing import Any, Final

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.semantics import NOT_NEGATIVE, Document, Problems, ensured, items, refuse_names, refuse_negative, section
from herder.api.problems import NOT_SUPPORTED, Problem, forbidden, invalid, not_supported, required, shown, too_many
from herder.api.quantity import parse_quantity

LONGEST_PERIOD: Final = 1800
LONGEST_WINDOW: Final = 3600
MOST_METRICS: Final = 16
MOST_POLICIES: Final = 16
_DEFAULT_UTILIZATION: Final = 80
_SELECTS: Final = ("Disabled", "Max", "Min")
_POLICIES: Final = ("Percent", "Pods")
_TARGETS: Final = ("Utilization", "Value", "AverageValue")
# Which field belongs to which type.
_OTHER_SOURCES: Final = {"Object": "object", "Pods": "pods", "External": "external", "ContainerResource": "containerResource"}
_ONLY: Final = "only metrics of type Resource are supported here, cpu and memory of the pods as metrics.k8s.io tells them"


def default_autoscaler(obj: Document) -> None:
    spec = ensured(obj, "spec")
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        faster = [_policy("Pods", 4), _policy("Percent", 100)]
        _default_rules(ensured(behavior, "scaleUp"), {"stabilizationWindowSeconds": 0, "policies": faster})
        # Its window is the controller's: 300 seconds.
        _default_rules(ensured(behavior, "scaleDown"), {"policies": [_policy("Percent", 100)]})


def _policy(kind: str, value: int) -> Document:
    return {"type": kind, "value": value, "periodSeconds": 15}


def _default_rules(rules: Document, defaults: Document) -> None:
    for name, value in {"selectPolicy": "Max", **defaults}.items():
        rules.setdefault(name, value)


def validate_autoscaler(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)
    _check_spec(section(obj, "spec"), None, out)


def validate_autoscaler_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    _check_spec(section(new, "spec"), section(old, "spec"), out)
    for name in ("currentReplicas", "desiredReplicas"):
        refuse_negative(section(new, "status").get(name), f"status.{name}", out)


def _check_spec(spec: Document, old: Document | None, out: Problems) -> None:
    smallest, largest = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if smallest is not None and smallest < 1:
        out.append(invalid("spec.minReplicas", smallest, "must be greater than or equal to 1"))
    if largest == 0:
        out.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif largest < 0:
        out.append(invalid("spec.maxReplicas", largest, "must be greater than or equal to 1"))
    if smallest is not None and largest < smallest:
        out.append(invalid("spec.maxReplicas", largest, "must be greater than or equal to `minReplicas`"))
    before = None if old is None else section(old, "scaleTargetRef")
    _check_target(section(spec, "scaleTargetRef"), before, out)
    _check_metrics(spec, out)
    for name in ("scaleUp", "scaleDown"):
        rules = section(spec, "behavior").get(name)
        if rules is not None:
            _check_rules(rules, f"spec.behavior.{name}", out)


def _check_target(target: Document, old: Document | None, out: Problems) -> None:
    for name in ("kind", "name"):
        value = target.get(name) or ""
        if not value:
            out.append(required(f"spec.scaleTargetRef.{name}"))
        else:
            refuse_names(names.path_segment(value), f"spec.scaleTargetRef.{name}", value, out)
    # What was stored before may stay as it is.
    if old is None or any(target.get(name) != old.get(name) for name in ("kind", "apiVersion")):
        _check_version(target.get("apiVersion") or "", target.get("kind"), out)


def _check_version(version: str, kind: Any, out: Problems) -> None:
    field = "spec.scaleTargetRef.apiVersion"
    if version.count("/") > 1:
        out.append(invalid(field, version, f"unexpected GroupVersion string: {version}"))
    elif not version.partition("/")[1] and kind != "ReplicationController":
        out.append(invalid(field, version, "apiVersion must specify API group"))


def _check_metrics(spec: Document, out: Problems) -> None:
    metrics = items(spec, "metrics")
    if len(metrics) > MOST_METRICS:
        out.append(too_many("spec.metrics", len(metrics), MOST_METRICS))
        return
    for index, metric in enumerate(metrics):
        _check_metric(metric, f"spec.metrics[{index}]", out)
    if spec.get("minReplicas") == 0:
        out.append(
            forbidden("spec.metrics", "must specify at least one Object or External metric to support scaling to zero replicas")
        )


def _check_metric(metric: Document, field: str, out: Problems) -> None:
    kind, source = metric.get("type") or "", metric.get("resource")
    if not kind:
        out.append(required(f"{field}.type", "must specify a metric source type"))
    if kind in _OTHER_SOURCES:
        out.append(Problem(f"{field}.type", NOT_SUPPORTED, f"Unsupported value: {shown(kind)}: {_ONLY}"))
        return
    if kind != "Resource":
        out.append(not_supported(f"{field}.type", kind, ("Resource",)))
    if source is not None:
        _check_source(source, f"{field}.resource", out)
    elif kind == "Resource":
        out.append(required(f"{field}.resource", "must populate information for the given metric source"))
    for name in sorted(_OTHER_SOURCES.values()):
        if metric.get(name) is not None:
            out.append(forbidden(f"{field}.{name}", "must populate the given metric source only"))


def _check_source(source: Document, field: str, out: Problems) -> None:
    if not source.get("name"):
        out.append(required(f"{field}.name", "must specify a resource name"))
    target = section(source, "target")
    _check_metric_target(target, f"{field}.target", out)
    has_value, has_utilization = (target.get(name) is not None for name in ("averageValue", "averageUtilization"))
    if not has_value and not has_utilization:
        out.append(required(f"{field}.target.averageUtilization", "must set either a target raw value or a target utilization"))
    if has_value and has_utilization:
        out.append(forbidden(f"{field}.target.averageValue", "may not set both a target raw value and a target utilization"))


def _check_metric_target(target: Document, field: str, out: Problems) -> None:
    kind = target.get("type") or ""
    if not kind:
        out.append(required(f"{field}.type", "must specify a metric target type"))
    if kind not in _TARGETS:
        out.append(invalid(f"{field}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for name in ("value", "averageValue"):
        if target.get(name) is not None and parse_quantity(target[name]).sign != 1:
            out.append(invalid(f"{field}.{name}", target[name], "must be positive"))
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        out.append(invalid(f"{field}.averageUtilization", utilization, "must be greater than 0"))


def _check_rules(rules: Document, field: str, out: Problems) -> None:
    window, select, tolerance = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy"), rules.get("tolerance")
    if window is not None and window < 0:
        out.append(invalid(f"{field}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > LONGEST_WINDOW:
        out.append(invalid(f"{field}.stabilizationWindowSeconds", window, f"must be less than or equal to {LONGEST_WINDOW}"))
    if select is not None and select not in _SELECTS:
        out.append(not_supported(f"{field}.selectPolicy", select, _SELECTS))
    _check_policies(items(rules, "policies"), f"{field}.policies", out)
    if tolerance is not None and parse_quantity(tolerance).sign < 0:
        out.append(invalid(f"{field}.tolerance", tolerance, NOT_NEGATIVE))


def _check_policies(policies: Any, field: str, out: Problems) -> None:
    if not policies:
        out.append(required(field, "must specify at least one Policy"))
    if len(policies) > MOST_POLICIES:
        out.append(too_many(field, len(policies), MOST_POLICIES))
        return
    for index, policy in enumerate(policies):
        _check_policy(policy, f"{field}[{index}]", out)


def _check_policy(policy: Document, field: str, out: Problems) -> None:
    kind, value, period = policy.get("type") or "", policy.get("value", 0), policy.get("periodSeconds", 0)
    if kind not in _POLICIES:
        out.append(not_supported(f"{field}.type", kind, _POLICIES))
    for name, amount in (("value", value), ("periodSeconds", period)):
        if amount <= 0:
            out.append(invalid(f"{field}.{name}", amount, "must be greater than zero"))
    if period > LONGEST_PERIOD:
        out.append(invalid(f"{field}.periodSeconds", period, f"must be less than or equal to {LONGEST_PERIOD}"))
