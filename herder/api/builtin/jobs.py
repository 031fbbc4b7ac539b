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
    _check_own_pods(obj, True, out)
    _check_spec(section(obj, "spec"), out)


def validate_job_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(section(new, "metadata"), section(old, "metadata"), out)
    spec, before = section(new, "spec"), section(old, "spec")
    known = section(section(section(before, "template"), "metadata"), "labels")
    _check_own_pods(new, _NAME_LABELS[1] in known and UID_LABEL in known, out)
    _check_spec(spec, out)
    if spec.get("completionMode") != "Indexed":
        refuse_change(spec.get("completions"), before.get("completions"), "spec.completions", out)
    for name in _FIXED:
        refuse_change(spec.get(name), before.get(name), f"spec.{name}", out)


def _check_own_pods(obj: Document, prefixed: bool, out: Problems) -> None:
    """Labels that we would have added, and that people gave another value. `prefixed`: not those of old alone."""
    spec, meta = section(obj, "spec"), section(obj, "metadata")
    if spec.get("manualSelector") or spec.get("selector") is None:
        return
    labels = section(section(section(spec, "template"), "metadata"), "labels")
    count = 2 if prefixed else 1
    wanted = {name: meta.get("uid") or "" for name in _UID_LABELS[:count]}
    wanted |= {name: meta.get("name") or "" for name in _NAME_LABELS[:count]}
    for name, value in wanted.items():
        at = f"spec.template.metadata.labels[{name}]"
        if name not in labels:
            out.append(required(at, f"must be '{value}'"))
        elif labels[name] != value:
            out.append(invalid(at, labels, f"must be '{value}'"))
    try:
        matches = selector_from_object(spec["selector"]).matches(wanted)
    except ValueError:
        return
    if not matches:
        out.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))


def _check_spec(spec: Document, out: Problems) -> None:
    check_work(spec, "spec", out)
    _check_selector(spec, section(section(spec, "template"), "metadata").get("labels"), out)


def check_work(spec: Document, field: str, out: Problems) -> None:
    """What a Job is to do, without whose pods are its own."""
    for name in _NOT_NEGATIVE:
        refuse_negative(spec.get(name), f"{field}.{name}", out)
    _check_mode(spec, field, out)
    template = section(spec, "template")
    check_template(template, f"{field}.template", out)
    at, policy = f"{field}.template.spec.restartPolicy", section(template, "spec").get("restartPolicy", "")
    if policy == "Always":
        out.append(required(at, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        out.append(not_supported(at, policy, ("OnFailure", "Never")))


def _check_mode(spec: Document, field: str, out: Problems) -> None:
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        out.append(not_supported(f"{field}.completionMode", mode, ("Indexed", "NonIndexed")))
    if mode == "Indexed":
        if spec.get("completions") is None:
            out.append(required(f"{field}.completions", "when completion mode is Indexed"))
        return
    for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(name) is not None:
            out.append(invalid(f"{field}.{name}", spec[name], "requires indexed completion mode"))


def _check_selector(spec: Document, labels: dict[str, str] | None, out: Problems) -> None:
    written = spec.get("selector")
    out += [required("spec.selector")] if written is None else validate_label_selector(written, "spec.selector")
    try:
        matches = selector_from_object(written).matches(labels)
    except ValueError:
        return
    if not matches:
        out.append(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
