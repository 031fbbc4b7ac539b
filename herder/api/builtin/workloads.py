"""Rules for ReplicaSets, Deployments, StatefulSets and ControllerRevisions."""

from __future__ import annotations

from typing import Any, Final

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.pods import check_template
from herder.api.builtin.semantics import IMMUTABLE, Document, Problems, refuse_change, refuse_names, refuse_negative, same, section
from herder.api.builtin.storage import check_claim_spec
from herder.api.int_or_percent import int_value, percent_of, validate_at_most_hundred_percent, validate_int_or_percent
from herder.api.problems import INVALID, Problem, forbidden, invalid, not_supported, required, shown
from herder.api.selectors import NOTHING, Selector, selector_from_object, validate_label_selector

_CHANGEABLE: Final = ("replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit")
_CHANGEABLE_TOO: Final = "persistentVolumeClaimRetentionPolicy"
_STATEFUL_FIXED: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def validate_replica_set(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)
    _check_replica_set_spec(section(obj, "spec"), out)


def validate_replica_set_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    _check_replica_set_spec(section(new, "spec"), out)
    _refuse_other_selector(new, old, out)


def _check_replica_set_spec(spec: Document, out: Problems) -> None:
    refuse_negative(spec.get("replicas"), "spec.replicas", out)
    refuse_negative(spec.get("minReadySeconds"), "spec.minReadySeconds", out)
    selector = _selector(spec, "deployment", "invalid label selector", out)
    if selector is not None:
        _check_pods(spec, selector, "ReplicaSet", out)


def _selector(spec: Document, called: str, wrong: str, out: Problems) -> Selector | None:
    """The selector of a workload; None when it cannot be understood."""
    written = spec.get("selector")
    if written is None:
        out.append(required("spec.selector"))
        return NOTHING
    out += validate_label_selector(written, "spec.selector")
    if not written.get("matchLabels") and not written.get("matchExpressions"):
        out.append(invalid("spec.selector", {}, f"empty selector is invalid for {called}"))
    try:
        return selector_from_object(written)
    except ValueError:
        said = f"Invalid value: {shown(written)}"
        out.append(Problem("spec.selector", INVALID, f"{said}: {wrong}" if wrong else said))
        return None


def _check_pods(spec: Document, selector: Selector, called: str, out: Problems) -> None:
    template = section(spec, "template")
    _check_labels(template, selector, out)
    check_template(template, "spec.template", out)
    refuse_restart(section(template, "spec"), called, out)


def _check_labels(template: Document, selector: Selector, out: Problems) -> None:
    labels = section(template, "metadata").get("labels")
    if not selector.empty and not selector.matches(labels):
        out.append(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))


def refuse_restart(pod_spec: Document, called: str, out: Problems) -> None:
    if pod_spec.get("restartPolicy") != "Always":
        out.append(not_supported("spec.template.spec.restartPolicy", pod_spec.get("restartPolicy", ""), ("Always",)))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {called} is not Supported"
        out.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))


def _refuse_other_selector(new: Document, old: Document, out: Problems) -> None:
    refuse_change(section(new, "spec").get("selector"), section(old, "spec").get("selector"), "spec.selector", out)


def validate_deployment(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)
    _check_deployment_spec(section(obj, "spec"), out)


def validate_deployment_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    _check_deployment_spec(section(new, "spec"), out)
    _refuse_other_selector(new, old, out)


def _check_deployment_spec(spec: Document, out: Problems) -> None:
    refuse_negative(spec.get("replicas"), "spec.replicas", out)
    selector = _selector(spec, "deployment", "invalid label selector", out)
    if selector is not None:
        _check_pods(spec, selector, "ReplicaSet", out)
    _check_strategy(section(spec, "strategy"), "spec.strategy", out)
    for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        refuse_negative(spec.get(name), f"spec.{name}", out)
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        out.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))


def _check_strategy(strategy: Document, field: str, out: Problems) -> None:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                out.append(forbidden(f"{field}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"))
        case "RollingUpdate":
            if rolling is None:
                out.append(required(f"{field}.rollingUpdate", "this should be defaulted and never be nil"))
            else:
                _check_rolling_update(rolling, f"{field}.rollingUpdate", out)
        case _:
            out.append(not_supported(field, strategy, ("Recreate", "RollingUpdate")))


def _check_rolling_update(rolling: Document, field: str, out: Problems) -> None:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    out += validate_int_or_percent(unavailable, f"{field}.maxUnavailable")
    out += validate_int_or_percent(surge, f"{field}.maxSurge")
    if number_in(unavailable) == 0 and number_in(surge) == 0:
        out.append(invalid(f"{field}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    out += validate_at_most_hundred_percent(unavailable, f"{field}.maxUnavailable")


def number_in(value: Any) -> int:
    """The number before the percent sign, or the number itself."""
    percent = percent_of(value)
    return int_value(value) if percent is None else percent


def validate_stateful_set(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_label, out)
    _check_stateful_spec(section(obj, "spec"), out)
    spec = section(obj, "spec")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        check_claim_spec(section(claim, "spec"), f"spec.volumeClaimTemplates[{index}].spec", out)
    if spec.get("serviceName"):
        refuse_names(names.dns_label(spec["serviceName"]), "spec.serviceName", spec["serviceName"], out)


def validate_stateful_set_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    spec, before = section(new, "spec"), section(old, "spec")
    _check_stateful_spec(spec, out)
    changeable = {*_CHANGEABLE, _CHANGEABLE_TOO}
    fixed = [{name: value for name, value in one.items() if name not in changeable} for one in (spec, before)]
    if not same(*fixed):
        out.append(forbidden("spec", _STATEFUL_FIXED))


def _check_stateful_spec(spec: Document, out: Problems) -> None:
    policy = spec.get("podManagementPolicy")
    if not policy:
        out.append(required("spec.podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        out.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    _check_update_strategy(section(spec, "updateStrategy"), "spec.updateStrategy", out)
    for name, value in section(spec, "persistentVolumeClaimRetentionPolicy").items():
        if name in ("whenDeleted", "whenScaled") and value not in ("Retain", "Delete"):
            out.append(not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, ("Retain", "Delete")))
    refuse_negative(spec.get("replicas"), "spec.replicas", out)
    refuse_negative(spec.get("minReadySeconds"), "spec.minReadySeconds", out)
    refuse_negative(section(spec, "ordinals").get("start"), "spec.ordinals.start", out)
    selector = _selector(spec, "statefulset", "", out)
    if selector is not None:
        template = section(spec, "template")
        _check_labels(template, selector, out)
        check_template(_with_claims(template, spec), "spec.template", out)
    refuse_restart(section(section(spec, "template"), "spec"), "StatefulSet", out)


def _check_update_strategy(strategy: Document, field: str, out: Problems) -> None:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case None | "":
            out.append(required(field))
        case "OnDelete":
            if rolling is not None:
                out.append(invalid(f"{field}.rollingUpdate", rolling, "only allowed for updateStrategy 'RollingUpdate'"))
        case "RollingUpdate":
            refuse_negative((rolling or {}).get("partition"), f"{field}.rollingUpdate.partition", out)
            if (rolling or {}).get("maxUnavailable") is not None:
                _check_unavailable(
                    section(strategy, "rollingUpdate")["maxUnavailable"], f"{field}.rollingUpdate.maxUnavailable", out
                )
        case _:
            out.append(invalid(field, strategy, "must be 'RollingUpdate' or 'OnDelete'"))


def _check_unavailable(value: Any, field: str, out: Problems) -> None:
    out += validate_int_or_percent(value, field)
    if number_in(value) == 0:
        out.append(invalid(field, value, "cannot be 0"))
    out += validate_at_most_hundred_percent(value, field)


def _with_claims(template: Document, spec: Document) -> Document:
    """Pods of a StatefulSet may mount its claims as if they were volumes, and it names their hosts itself."""
    pod_spec = {name: value for name, value in section(template, "spec").items() if name not in ("hostname", "subdomain")}
    claims = [section(claim, "metadata").get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    kept = [volume for volume in pod_spec.get("volumes") or () if volume.get("name") not in claims]
    pod_spec["volumes"] = [*made, *kept]
    return {**template, "spec": pod_spec}


def validate_revision(obj: Document, out: Problems) -> None:
    _check_revision(obj, out)
    if obj.get("data") is None:
        out.append(required("data", "data is mandatory"))
    elif not isinstance(obj["data"], dict):
        out.append(required("data", "data must be a valid JSON object"))


def _check_revision(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)
    refuse_negative(obj.get("revision"), "revision", out)


def validate_revision_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    _check_revision(new, out)
    if shown(new.get("data")) != shown(old.get("data")):  # any JSON, so compared as text: 1 is not true
        out.append(invalid("data", new.get("data"), IMMUTABLE))
