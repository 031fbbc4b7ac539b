"""Which printer shows which resource."""

from __future__ import annotations

from herder.server.resources import Resource
from herder.server.tables import autoscaling, cluster, pods, storage, stored_only, workloads
from herder.server.tables.columns import Printer
from herder.server.tables.custom import custom_printer

_RBAC = "rbac.authorization.k8s.io"

_BUILTINS: dict[tuple[str, str], Printer] = {
    ("", "configmaps"): storage.CONFIG_MAPS,
    ("", "events"): cluster.EVENTS,
    ("", "namespaces"): cluster.NAMESPACES,
    ("", "nodes"): cluster.NODES,
    ("", "persistentvolumeclaims"): storage.CLAIMS,
    ("", "persistentvolumes"): storage.VOLUMES,
    ("", "pods"): pods.PODS,
    ("", "secrets"): storage.SECRETS,
    ("", "serviceaccounts"): cluster.PLAIN,
    ("apps", "controllerrevisions"): workloads.CONTROLLER_REVISIONS,
    ("apps", "daemonsets"): stored_only.DAEMON_SETS,
    ("apps", "deployments"): workloads.DEPLOYMENTS,
    ("apps", "replicasets"): workloads.REPLICA_SETS,
    ("apps", "statefulsets"): workloads.STATEFUL_SETS,
    ("autoscaling", "horizontalpodautoscalers"): autoscaling.AUTOSCALERS,
    ("autoscaling", "scales"): workloads.SCALES,
    ("batch", "cronjobs"): stored_only.CRON_JOBS,
    ("batch", "jobs"): stored_only.JOBS,
    ("coordination.k8s.io", "leases"): cluster.LEASES,
    ("events.k8s.io", "events"): cluster.EVENTS,
    ("policy", "poddisruptionbudgets"): workloads.BUDGETS,
    (_RBAC, "clusterrolebindings"): cluster.BINDINGS,
    (_RBAC, "rolebindings"): cluster.BINDINGS,
    ("scheduling.k8s.io", "priorityclasses"): cluster.PRIORITY_CLASSES,
    ("storage.k8s.io", "storageclasses"): storage.CLASSES,
}


def printer_for(resource: Resource) -> Printer:
    if not resource.builtin:
        return custom_printer(resource.columns or ())
    return _BUILTINS.get((resource.group, resource.plural), cluster.DEFAULT)
