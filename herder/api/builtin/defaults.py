"""What Kubernetes fills in when an object leaves it out, for the kinds beside pods."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

from herder.api.builtin.autoscaling import default_autoscaler
from herder.api.builtin.cron_jobs import default_cron_job
from herder.api.builtin.daemon_sets import default_daemon_set
from herder.api.builtin.jobs import default_job
from herder.api.builtin.pod_defaults import default_pod, default_template
from herder.api.builtin.semantics import Document, ensured, items, section

RBAC: Final = "rbac.authorization.k8s.io"


def default(group: str, kind: str, obj: Document) -> None:
    """Fills in the defaults of a built-in kind, in place. Other kinds stay as they are."""
    fill = _DEFAULTS.get((group, kind))
    if fill is not None:
        fill(obj)


def _replica_set(obj: Document) -> None:
    spec = ensured(obj, "spec")
    spec.setdefault("replicas", 1)
    default_template(ensured(spec, "template"))


def _deployment(obj: Document) -> None:
    spec = ensured(obj, "spec")
    spec.setdefault("replicas", 1)
    strategy = ensured(spec, "strategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = ensured(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    default_template(ensured(spec, "template"))


def _stateful_set(obj: Document) -> None:
    spec = ensured(obj, "spec")
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = ensured(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        ensured(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        strategy["rollingUpdate"].setdefault("partition", 0)
    kept = ensured(spec, "persistentVolumeClaimRetentionPolicy")
    for name in ("whenDeleted", "whenScaled"):
        if not kept.get(name):
            kept[name] = "Retain"
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    default_template(ensured(spec, "template"))
    for claim in items(spec, "volumeClaimTemplates"):
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        _claim(claim)


def _daemon_set(obj: Document) -> None:
    spec = ensured(obj, "spec")
    default_daemon_set(spec)
    default_template(ensured(spec, "template"))


def _job(obj: Document) -> None:
    spec = ensured(obj, "spec")
    default_job(obj, spec)
    default_template(ensured(spec, "template"))


def _cron_job(obj: Document) -> None:
    spec = ensured(obj, "spec")
    default_cron_job(spec)
    # Go writes it even where it is empty.
    ensured(ensured(spec, "jobTemplate"), "metadata")
    default_template(ensured(ensured(spec["jobTemplate"], "spec"), "template"))


def _claim(obj: Document) -> None:
    ensured(obj, "spec").setdefault("volumeMode", "Filesystem")
    status = ensured(obj, "status")
    if not status.get("phase"):
        status["phase"] = "Pending"


def _volume(obj: Document) -> None:
    spec = ensured(obj, "spec")
    if not spec.get("persistentVolumeReclaimPolicy"):
        spec["persistentVolumeReclaimPolicy"] = "Retain"
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")
    status = ensured(obj, "status")
    if not status.get("phase"):
        status["phase"] = "Pending"


def _storage_class(obj: Document) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _secret(obj: Document) -> None:
    """`stringData` is for writing only: it goes into `data`, encoded."""
    if not obj.get("type"):
        obj["type"] = "Opaque"
    plain = obj.pop("stringData", None)
    if plain:
        data = ensured(obj, "data")
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode()).decode()


def _namespace(obj: Document) -> None:
    name = section(obj, "metadata").get("name")
    if name:
        ensured(obj["metadata"], "labels")["kubernetes.io/metadata.name"] = name
    status = ensured(obj, "status")
    if not status.get("phase"):
        status["phase"] = "Active"


def _node(obj: Document) -> None:
    spec = ensured(obj, "spec")
    if spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    elif spec.get("podCIDR"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    status = ensured(obj, "status")
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])


def _priority_class(obj: Document) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
    obj.setdefault("value", 0)


def _binding(obj: Document) -> None:
    reference = ensured(obj, "roleRef")
    if not reference.get("apiGroup"):
        reference["apiGroup"] = RBAC
    for subject in items(obj, "subjects"):
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = RBAC


def _definition(obj: Document) -> None:
    spec = ensured(obj, "spec")
    named = ensured(spec, "names")
    kind = named.get("kind") or ""
    if not named.get("singular"):
        named["singular"] = kind.lower()
    if not named.get("listKind") and kind:
        named["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    webhook = section(section(section(spec, "conversion"), "webhook"), "clientConfig").get("service")
    if webhook is not None:
        webhook.setdefault("port", 443)
    for version in items(spec, "versions"):
        version.setdefault("served", False)
        version.setdefault("storage", False)
    status = ensured(obj, "status")
    if not status.get("storedVersions"):
        status["storedVersions"] = [version.get("name", "") for version in items(spec, "versions") if version["storage"]][:1]


def _revision(obj: Document) -> None:
    obj.setdefault("revision", 0)


_DEFAULTS: Final[dict[tuple[str, str], Callable[[Document], None]]] = {
    ("", "Pod"): default_pod,
    ("", "Namespace"): _namespace,
    ("", "Node"): _node,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Secret"): _secret,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "ControllerRevision"): _revision,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): default_autoscaler,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    (RBAC, "ClusterRoleBinding"): _binding,
    (RBAC, "RoleBinding"): _binding,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
