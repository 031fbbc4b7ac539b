"""What may change in a pod once it exists: images, the deadline, more tolerations, fewer gates. The rest is fixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from herder.api.builtin.objectmeta import validate_meta_update
from herder.api.builtin.pods import validate_pod
from herder.api.builtin.semantics import Document, Problems, changed_names, same
from herder.api.problems import forbidden, invalid, required

_MAX_INT32: Final = 2147483647
_CHANGEABLE: Final = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


def validate_pod_update(new: Document, old: Document, out: Problems) -> None:
    validate_meta_update(new.get("metadata") or {}, old.get("metadata") or {}, out)
    if new.get("spec") is old.get("spec"):
        return  # the very same, as in every write of the status: it was judged when it came
    validate_pod(new, out)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for name in ("containers", "initContainers"):
        if not _same_number(spec.get(name) or (), before.get(name) or (), f"spec.{name}", out):
            return
    if not _check_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"), out):
        return
    _check_tolerations(spec.get("tolerations") or (), before.get("tolerations") or (), out)
    _check_gates(spec.get("schedulingGates") or (), before.get("schedulingGates") or (), out)
    if not same(spec, before):
        _check_fixed(spec, before, out)


def _same_number(new: Sequence[Document], old: Sequence[Document], field: str, out: Problems) -> bool:
    if len(new) != len(old):
        out.append(forbidden(field, "pod updates may not add or remove containers"))
        return False
    for index, container in enumerate(new):
        if not container.get("image"):
            out.append(required(f"{field}[{index}].image"))
    return True


def _check_deadline(new: int | None, old: int | None, out: Problems) -> bool:
    field = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            out.append(invalid(field, None, "must not update from a positive integer to nil value"))
        return True
    if not 0 <= new <= _MAX_INT32:
        out.append(invalid(field, new, f"must be between 0 and {_MAX_INT32}, inclusive"))
        return False
    if old is not None and old < new:
        out.append(invalid(field, new, "must be less than or equal to previous value"))
        return False
    return True


def _check_tolerations(new: Sequence[Document], old: Sequence[Document], out: Problems) -> None:
    kept = [{**toleration, "tolerationSeconds": None} for toleration in new]
    for toleration in old:
        wanted = {**toleration, "tolerationSeconds": None}
        if not any(same(wanted, one) for one in kept):
            out.append(forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"))
            return


def _check_gates(new: Sequence[Document], old: Sequence[Document], out: Problems) -> None:
    before = {gate.get("name") for gate in old}
    for index, gate in enumerate(new):
        if gate.get("name") not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            out.append(forbidden(f"spec.schedulingGates[{index}].name", detail))


def _check_fixed(spec: Document, before: Document, out: Problems) -> None:
    allowed = dict(spec)
    for name in ("containers", "initContainers"):
        if spec.get(name):
            pairs = zip(spec[name], before[name], strict=True)
            allowed[name] = [{**container, "image": previous.get("image")} for container, previous in pairs]
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        allowed[name] = before.get(name)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        allowed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if before.get("schedulingGates"):
        _free_selector_of_gated_pod(allowed, before, out)
    changed = changed_names(allowed, before)
    if changed:
        listed = ", ".join(f"spec.{name}" for name in changed)
        out.append(forbidden("spec", f"pod updates may not change fields other than {_CHANGEABLE}\nchanged: {listed}"))


def _free_selector_of_gated_pod(allowed: Document, before: Document, out: Problems) -> None:
    """As long as a pod waits behind a gate, its demands on the node may grow."""
    selector, previous = allowed.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    for key, value in previous.items():
        if selector.get(key) != value:
            out.append(invalid(f"spec.nodeSelector[{key}]", selector.get(key), "only additions to the selector are allowed"))
    allowed["nodeSelector"] = before.get("nodeSelector")
    affinity = dict(allowed.get("affinity") or {})
    affinity["nodeAffinity"] = (before.get("affinity") or {}).get("nodeAffinity")
    allowed["affinity"] = affinity
