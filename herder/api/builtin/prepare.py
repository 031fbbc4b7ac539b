"""What the server itself sets or resets on a write: status belongs to its subresource, generation counts changes of the spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from herder.api.builtin.daemon_sets import count_templates
from herder.api.builtin.jobs import select_own_pods
from herder.api.builtin.semantics import Document, ensured, items, same, section
from herder.api.quantity import parse_quantity

RBAC: Final = "rbac.authorization.k8s.io"
_NO_PODS: Final = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
_NO_NODES: Final = {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}

# Kinds whose status is written through its subresource only, and what it is at first.
_FIRST_STATUS: Final[dict[tuple[str, str], Callable[[], Document]]] = {
    ("", "Pod"): lambda: {"phase": "Pending"},
    ("", "Namespace"): lambda: {"phase": "Active"},
    ("", "PersistentVolumeClaim"): lambda: {"phase": "Pending"},
    ("", "PersistentVolume"): lambda: {"phase": "Pending"},
    ("apps", "DaemonSet"): lambda: dict(_NO_NODES),
    ("apps", "Deployment"): dict,
    ("apps", "ReplicaSet"): lambda: {"replicas": 0},
    ("apps", "StatefulSet"): lambda: {"replicas": 0, "availableReplicas": 0},
    ("autoscaling", "HorizontalPodAutoscaler"): lambda: {"desiredReplicas": 0},
    ("batch", "CronJob"): dict,
    ("batch", "Job"): dict,
    ("policy", "PodDisruptionBudget"): lambda: dict(_NO_PODS),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): dict,
}
_WITH_STATUS: Final = frozenset((*_FIRST_STATUS, ("", "Node")))
_COUNTS_GENERATION: Final = frozenset(
    (
        ("", "Pod"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("policy", "PodDisruptionBudget"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("scheduling.k8s.io", "PriorityClass"),
    )
)


def prepare_for_create(group: str, kind: str, obj: Document) -> None:
    """After defaulting and before validation of a new object."""
    key = (group, kind)
    meta = ensured(obj, "metadata")
    first = _FIRST_STATUS.get(key)
    if first is not None:
        obj["status"] = first()
    if key in _COUNTS_GENERATION:
        meta["generation"] = 1
    else:
        meta.pop("generation", None)
    if key == ("", "Pod"):
        obj["status"]["qosClass"] = qos_class(section(obj, "spec"))
    elif key == ("", "Namespace"):
        _own_finalizer(obj)
    elif key == ("apps", "DaemonSet"):
        count_templates(obj, None)
    elif key == ("batch", "Job"):
        select_own_pods(obj)
    _drop_gated(key, obj)
    if key == ("", "PersistentVolumeClaim"):
        _same_data_source(section(obj, "spec"))
    elif key == ("apiextensions.k8s.io", "CustomResourceDefinition"):
        _first_definition_status(obj)


def _own_finalizer(obj: Document) -> None:
    finalizers = ensured(obj, "spec").setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def _drop_gated(key: tuple[str, str], obj: Document) -> None:
    """Fields behind gates that are closed by default are dropped, not refused."""
    if key == ("coordination.k8s.io", "Lease"):
        for name in ("strategy", "preferredHolder"):
            section(obj, "spec").pop(name, None)
    elif key == ("apps", "StatefulSet"):
        section(section(section(obj, "spec"), "updateStrategy"), "rollingUpdate").pop("maxUnavailable", None)


def _same_data_source(spec: Document) -> None:
    """A claim names what it is filled from twice: what the old field alone cannot name is dropped."""
    source = spec.get("dataSource")
    if source is not None and not _is_claim_or_snapshot(source):
        source = None
        del spec["dataSource"]
    reference = spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and reference is not None and not reference.get("namespace"):
        spec["dataSource"] = dict(reference)


def _is_claim_or_snapshot(source: Document) -> bool:
    group, kind = source.get("apiGroup") or "", source.get("kind")
    return (group == "" and kind == "PersistentVolumeClaim") or (group == "snapshot.storage.k8s.io" and kind == "VolumeSnapshot")


def _first_definition_status(obj: Document) -> None:
    versions = items(section(obj, "spec"), "versions")
    stored = [version.get("name", "") for version in versions if version.get("storage")]
    obj["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored[:1]}


def prepare_for_update(group: str, kind: str, new: Document, old: Document) -> None:
    """After defaulting and before validation of a changed object: its status stays, its generation follows the spec."""
    key = (group, kind)
    if key in _WITH_STATUS:
        _keep(new, old, "status")
    if key == ("", "Namespace"):
        _keep_finalizers(new, old)
    meta = ensured(new, "metadata")
    before = section(old, "metadata").get("generation")
    if before is None:
        meta.pop("generation", None)
    else:
        meta["generation"] = before
    if key in _COUNTS_GENERATION and not _same_wish(key, new, old):
        meta["generation"] = (before or 0) + 1
    if key == ("apiextensions.k8s.io", "CustomResourceDefinition"):
        _add_stored_version(new)
    elif key == ("apps", "DaemonSet"):
        count_templates(new, old)


def _keep(new: Document, old: Document, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _keep_finalizers(new: Document, old: Document) -> None:
    """Finalizers of a namespace's content change through `finalize` only."""
    if old.get("spec") is not None:
        new["spec"] = old["spec"]


def _same_wish(key: tuple[str, str], new: Document, old: Document) -> bool:
    if key == ("scheduling.k8s.io", "PriorityClass"):
        return True
    if key == ("apiextensions.k8s.io", "CustomResourceDefinition"):
        return new.get("spec") == old.get("spec")  # here `status: {}` says a lot
    if not same(new.get("spec"), old.get("spec")):
        return False
    # A Deployment's annotations reach its ReplicaSets, so they count.
    annotated = key == ("apps", "Deployment")
    return not annotated or same(section(new, "metadata").get("annotations"), section(old, "metadata").get("annotations"))


def _add_stored_version(new: Document) -> None:
    """A version that becomes the storage version is remembered: objects may from now on be stored in it."""
    status = dict(section(new, "status"))
    stored = list(status.get("storedVersions") or ())
    for version in items(section(new, "spec"), "versions"):
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version.get("name", ""))
    new["status"] = {**status, "storedVersions": stored}


def qos_class(spec: Document) -> str:
    """How well a pod is protected when memory is short: Guaranteed, Burstable or BestEffort."""
    parts: Iterable[Document] = (
        [section(spec, "resources")]
        if spec.get("resources")
        else [section(container, "resources") for container in (*items(spec, "containers"), *items(spec, "initContainers"))]
    )
    nothing, guaranteed = True, True
    for resources in parts:
        requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
        nothing = nothing and not requests and not limits
        guaranteed = (
            guaranteed and len(limits) == 2 and all(requests.get(name, amount) == amount for name, amount in limits.items())
        )
    if nothing:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _amounts(resources: dict[str, Any] | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in ("cpu", "memory"):
        value = (resources or {}).get(name)
        if value is None:
            continue
        try:
            nanos = parse_quantity(value).nanos
        except ValueError:
            continue  # validation says so
        if nanos > 0:
            found[name] = nanos
    return found
