"""Rules for Jobs: those that people meet. Nobody runs one here, so the finer points of its policies are not looked at."""

from __future__ import annotations

from typing import Final

from herder.api import names
from herder.api.builtin.objectmeta import validate_meta, validate_meta_update
from herder.api.builtin.pods import check_template
from herder.api.builtin.semantics import Document, Problems, ensured, refuse_change, refuse_negative, section
from herder.api.problems import invalid, not_supported, required
from herder.api.selectors import selector_from_object, validate_label_selector

UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS: Final = ("controller-uid", UID_LABEL)
_NOT_NEGATIVE: Final = (
    *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit"),
    *("ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"),
)
_FIXED: Final = ("selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_MAX_INT32: Final = 2**31 - 1


def default_job(obj: Document, spec: Document) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _MAX_INT32 if spec.get("backoffLimitPerIndex") is not None else 6)
    labels = section(section(spec, "template"), "metadata").get("labels")
    if labels and not section(obj, "metadata").get("labels"):
        ensured(obj, "metadata")["labels"] = dict(labels)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def select_own_pods(obj: Document) -> None:
    """A selector that finds no other's pods, unless people want one of their own."""
    spec, meta = ensured(obj, "spec"), section(obj, "metadata")
    if spec.get("manualSelector"):
        return
    labels = ensured(ensured(ensured(spec, "template"), "metadata"), "labels")
    for name in _NAME_LABELS:
        labels.setdefault(name, meta.get("name") or "")
    for name in _UID_LABELS:
        labels.setdefault(name, meta.get("uid") or "")
    ensured(ensured(spec, "selector"), "matchLabels").setdefault(UID_LABEL, meta.get("uid") or "")


def validate_job(obj: Document, out: Problems) -> None:
    validate_meta(section(obj, "metadata"), True, names.name_is_subdomain, out)
    _check_spec(section(obj, "spec"), out)


def validate_job_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    spec, before = section(new, "spec"), section(old, "spec")
    _check_spec(spec, out)
    if spec.get("completionMode") != "Indexed":
        refuse_change(spec.get("completions"), before.get("completions"), "spec.completions", out)
    for name in _FIXED:
        refuse_change(spec.get(name), before.get(name), f"spec.{name}", out)


def _check_spec(spec: Document, out: Problems) -> None:
    for name in _NOT_NEGATIVE:
        refuse_negative(spec.get(name), f"spec.{name}", out)
    _check_mode(spec, out)
    template = section(spec, "template")
    check_template(template, "spec.template", out)
    policy = section(template, "spec").get("restartPolicy", "")
    if policy == "Always":
        out.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        out.append(not_supported("spec.template.spec.restartPolicy", policy, ("OnFailure", "Never")))
    _check_selector(spec, section(template, "metadata").get("labels"), out)


def _check_mode(spec: Document, out: Problems) -> None:
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        out.append(not_supported("spec.completionMode", mode, ("Indexed", "NonIndexed")))
    if mode == "Indexed":
        if spec.get("completions") is None:
            out.append(required("spec.completions", "when completion mode is Indexed"))
        return
    for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(name) is not None:
            out.append(invalid(f"spec.{name}", spec[name], "requires indexed completion mode"))


def _check_selector(spec: Document, labels: dict[str, str] | None, out: Problems) -> None:
    written = spec.get("selector")
    out += [required("spec.selector")] if written is None else validate_label_selector(written, "spec.selector")
    try:
        matches = selector_from_object(written).matches(labels)
    except ValueError:
        return
    if not matches:
        out.append(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
