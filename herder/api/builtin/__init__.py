"""The built-in kinds of the embedded API server: their defaults and their rules, as pure functions over plain documents.

A write goes through them in this order: `conform` (types), `default`, `prepare_for_create` or `prepare_for_update`,
`validate_create` or `validate_update`. Kinds that are not built in pass untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from herder.api.builtin import (
    autoscaling,
    cluster,
    config,
    cron_jobs,
    daemon_sets,
    definitions,
    jobs,
    pod_updates,
    pods,
    policy,
    rbac,
    storage,
    workloads,
)
from herder.api.builtin.defaults import default
from herder.api.builtin.prepare import prepare_for_create, prepare_for_update, qos_class
from herder.api.builtin.semantics import Document, Problems, without_repeats
from herder.api.builtin.shapes import conform, conform_metadata
from herder.api.problems import Problem


class _Rules(NamedTuple):
    create: Callable[[Document, Problems], None]
    update: Callable[[Document, Document, Problems], None]


_RBAC: Final = "rbac.authorization.k8s.io"
_RULES: Final[dict[tuple[str, str], _Rules]] = {
    ("", "ConfigMap"): _Rules(config.validate_config_map, config.validate_config_map_update),
    ("", "Event"): _Rules(cluster.validate_event, cluster.validate_event_update),
    ("", "Namespace"): _Rules(cluster.validate_namespace, cluster.validate_namespace_update),
    ("", "Node"): _Rules(cluster.validate_node, cluster.validate_node_update),
    ("", "PersistentVolume"): _Rules(storage.validate_volume, storage.validate_volume_update),
    ("", "PersistentVolumeClaim"): _Rules(storage.validate_claim, storage.validate_claim_update),
    ("", "Pod"): _Rules(pods.validate_pod_create, pod_updates.validate_pod_update),
    ("", "Secret"): _Rules(config.validate_secret, config.validate_secret_update),
    ("", "ServiceAccount"): _Rules(config.validate_service_account, config.validate_service_account_update),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _Rules(
        definitions.validate_definition, definitions.validate_definition_update
    ),
    ("apps", "ControllerRevision"): _Rules(workloads.validate_revision, workloads.validate_revision_update),
    ("apps", "DaemonSet"): _Rules(daemon_sets.validate_daemon_set, daemon_sets.validate_daemon_set_update),
    ("apps", "Deployment"): _Rules(workloads.validate_deployment, workloads.validate_deployment_update),
    ("apps", "ReplicaSet"): _Rules(workloads.validate_replica_set, workloads.validate_replica_set_update),
    ("apps", "StatefulSet"): _Rules(workloads.validate_stateful_set, workloads.validate_stateful_set_update),
    ("autoscaling", "HorizontalPodAutoscaler"): _Rules(autoscaling.validate_autoscaler, autoscaling.validate_autoscaler_update),
    ("batch", "CronJob"): _Rules(cron_jobs.validate_cron_job, cron_jobs.validate_cron_job_update),
    ("batch", "Job"): _Rules(jobs.validate_job, jobs.validate_job_update),
    ("coordination.k8s.io", "Lease"): _Rules(policy.validate_lease, policy.validate_lease_update),
    ("events.k8s.io", "Event"): _Rules(cluster.validate_new_event, cluster.validate_new_event_update),
    ("policy", "PodDisruptionBudget"): _Rules(policy.validate_budget, policy.validate_budget_update),
    (_RBAC, "ClusterRole"): _Rules(rbac.validate_cluster_role, rbac.validate_cluster_role_update),
    (_RBAC, "ClusterRoleBinding"): _Rules(rbac.validate_cluster_role_binding, rbac.validate_cluster_role_binding_update),
    (_RBAC, "Role"): _Rules(rbac.validate_role, rbac.validate_role_update),
    (_RBAC, "RoleBinding"): _Rules(rbac.validate_role_binding, rbac.validate_role_binding_update),
    ("scheduling.k8s.io", "PriorityClass"): _Rules(policy.validate_priority_class, policy.validate_priority_class_update),
    ("storage.k8s.io", "StorageClass"): _Rules(storage.validate_storage_class, storage.validate_storage_class_update),
}

BUILT_IN: Final = frozenset(_RULES)


def validate_create(group: str, kind: str, obj: dict[str, Any]) -> list[Problem]:
    """What is wrong with a new object; its defaults are filled in and its name is generated."""
    found: list[Problem] = []
    rules = _RULES.get((group, kind))
    if rules is not None:
        rules.create(obj, found)
    return without_repeats(found) if found else found


def validate_update(group: str, kind: str, new: dict[str, Any], old: dict[str, Any]) -> list[Problem]:
    """What is wrong with a changed object. Whether the resourceVersion fits is the store's question, not this one's."""
    found: list[Problem] = []
    rules = _RULES.get((group, kind))
    if rules is not None:
        rules.update(new, old, found)
    return without_repeats(found) if found else found


__all__ = [
    "BUILT_IN",
    "conform",
    "conform_metadata",
    "default",
    "prepare_for_create",
    "prepare_for_update",
    "qos_class",
    "validate_create",
    "validate_update",
]
