"""Typed views of the Kubernetes kinds that we read. They are never written back: writes are patches."""

from __future__ import annotations

from typing import Final

from herder.api.core.autoscaling import HorizontalPodAutoscaler, PodMetrics
from herder.api.core.base import Object
from herder.api.core.config import ConfigMap, Secret, ServiceAccount
from herder.api.core.crds import CustomResourceDefinition
from herder.api.core.events import Event, EventsEvent
from herder.api.core.nodes import Lease, Namespace, Node
from herder.api.core.pods import Pod
from herder.api.core.policy import PodDisruptionBudget, PodUnavailableBudget, PriorityClass
from herder.api.core.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from herder.api.core.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from herder.api.core.workloads import ControllerRevision, CronJob, DaemonSet, Deployment, Job, ReplicaSet, Scale, StatefulSet

_RBAC: Final = "rbac.authorization.k8s.io"

CORE_KINDS: Final[dict[tuple[str, str], type[Object]]] = {
    ("", "ConfigMap"): ConfigMap,
    ("", "Event"): Event,
    ("", "Namespace"): Namespace,
    ("", "Node"): Node,
    ("", "PersistentVolume"): PersistentVolume,
    ("", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("", "Pod"): Pod,
    ("", "Secret"): Secret,
    ("", "ServiceAccount"): ServiceAccount,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): CustomResourceDefinition,
    ("apps", "ControllerRevision"): ControllerRevision,
    ("apps", "DaemonSet"): DaemonSet,
    ("apps", "Deployment"): Deployment,
    ("apps", "ReplicaSet"): ReplicaSet,
    ("apps", "StatefulSet"): StatefulSet,
    ("autoscaling", "HorizontalPodAutoscaler"): HorizontalPodAutoscaler,
    ("batch", "CronJob"): CronJob,
    ("batch", "Job"): Job,
    ("coordination.k8s.io", "Lease"): Lease,
    ("events.k8s.io", "Event"): EventsEvent,
    ("policy", "PodDisruptionBudget"): PodDisruptionBudget,
    (_RBAC, "ClusterRole"): ClusterRole,
    (_RBAC, "ClusterRoleBinding"): ClusterRoleBinding,
    (_RBAC, "Role"): Role,
    (_RBAC, "RoleBinding"): RoleBinding,
    ("scheduling.k8s.io", "PriorityClass"): PriorityClass,
    ("storage.k8s.io", "StorageClass"): StorageClass,
}

__all__ = [
    "CORE_KINDS",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ControllerRevision",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "Event",
    "EventsEvent",
    "HorizontalPodAutoscaler",
    "Job",
    "Lease",
    "Namespace",
    "Node",
    "Object",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PodMetrics",
    "PodUnavailableBudget",
    "PriorityClass",
    "ReplicaSet",
    "Role",
    "RoleBinding",
    "Scale",
    "Secret",
    "ServiceAccount",
    "StatefulSet",
    "StorageClass",
]
