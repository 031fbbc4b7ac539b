"""Rules for DaemonSets."""

from __future__ import annotations

from typing import Final

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.pods import check_template
from herder.api.builtin.semantics import Document, Problems, ensured, refuse_change, refuse_negative, same, section
from herder.api.builtin.workloads import number_in, refuse_restart
from herder.api.int_or_percent import validate_at_most_hundred_percent, validate_int_or_percent
from herder.api.problems import invalid, not_supported, required
from herder.api.selectors import selector_from_object, validate_label_selector

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def default_daemon_set(spec: Document) -> None:
    strategy = ensured(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = ensured(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def count_templates(new: Document, old: Document | None) -> None:
    """How often the template has changed is kept in an annotation, which nobody else may set."""
    annotations = section(section(old or {}, "metadata"), "annotations")
    count = int(annotations.get(TEMPLATE_GENERATION) or 1)
    if old is not None and not same(section(new, "spec").get("template"), section(old, "spec").get("template")):
        count += 1
    ensured(ensured(new, "metadata"), "annotations")[TEMPLATE_GENERATION] = str(count)


def validate_daemon_set(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)
    _check_spec(section(obj, "spec"), out)


def validate_daemon_set_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    refuse_change(section(new, "spec").get("selector"), section(old, "spec").get("selector"), "spec.selector", out)
    _check_spec(section(new, "spec"), out)


def _check_spec(spec: Document, out: Problems) -> None:
    template = section(spec, "template")
    _check_selector(spec, section(template, "metadata").get("labels"), out)
    check_template(template, "spec.template", out)
    refuse_restart(section(template, "spec"), "DaemonSet", out)
    refuse_negative(spec.get("minReadySeconds"), "spec.minReadySeconds", out)
    _check_strategy(section(spec, "updateStrategy"), "spec.updateStrategy", out)
    refuse_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit", out)


def _check_selector(spec: Document, labels: dict[str, str] | None, out: Problems) -> None:
    written = spec.get("selector")
    if written is not None:
        out += validate_label_selector(written, "spec.selector")
    try:
        matches = selector_from_object(written).matches(labels)
    except ValueError:
        matches = True
    if not matches:
        out.append(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
    if written is not None and not written.get("matchLabels") and not written.get("matchExpressions"):
        out.append(invalid("spec.selector", {}, "empty selector is invalid for daemonset"))


def _check_strategy(strategy: Document, field: str, out: Problems) -> None:
    match strategy.get("type"):
        case "OnDelete":
            pass
        case "RollingUpdate":
            if strategy.get("rollingUpdate") is None:
                out.append(required(f"{field}.rollingUpdate"))
            else:
                _check_rolling_update(strategy["rollingUpdate"], f"{field}.rollingUpdate", out)
        case _:
            out.append(not_supported(field, strategy, ("RollingUpdate", "OnDelete")))


def _check_rolling_update(rolling: Document, field: str, out: Problems) -> None:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        out += validate_int_or_percent(value, f"{field}.{name}")
        out += validate_at_most_hundred_percent(value, f"{field}.{name}")
    if number_in(unavailable) and number_in(surge):
        out.append(invalid(f"{field}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not number_in(unavailable) and not number_in(surge):
        out.append(required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
