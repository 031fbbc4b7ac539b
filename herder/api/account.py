"""The account that our controllers run under, in a real cluster and under `herder up`: what they need, and no more.

Each controller adds the lines that it needs here, and its tests run under this account.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from herder.api.crds import PART_OF, PRODUCT

SYSTEM_NAMESPACE: Final = "herder-system"
ACCOUNT: Final = "herder-controllers"
_NAME: Final = "herder:controllers"
_GROUP: Final = "rbac.authorization.k8s.io"

Document = dict[str, Any]
READ: Final = ("get", "list", "watch")
_KEEP: Final = ("get", "create", "patch", "delete")


def _rule(group: str, resources: Iterable[str], *verbs: str) -> Document:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


# Everywhere: to say what happened to an object, beside the object.
EVERYWHERE: Final[list[Document]] = [
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    # Machines and their instances.
    _rule("kubevirt.io", ("virtualmachines", "kubevirts"), *READ),
    _rule("kubevirt.io", ("virtualmachineinstances",), *READ, "create", "patch", "delete"),
    _rule("kubevirt.io", ("virtualmachines/status", "virtualmachineinstances/status"), "patch"),
    # Migrations, what decides how they go, and the budgets of guests that are moved and not ended.
    _rule("kubevirt.io", ("virtualmachineinstancemigrations",), *READ, "create", "patch", "delete"),
    _rule("kubevirt.io", ("virtualmachineinstancemigrations/status",), "patch"),
    _rule("migrations.kubevirt.io", ("migrationpolicies",), *READ),
    _rule("migrations.kubevirt.io", ("migrationpolicies/status",), "patch"),
    # What the cluster's settings are is for people to say; what is in use, for us.
    _rule("kubevirt.io", ("kubevirts/status",), "patch"),
    _rule("policy", ("poddisruptionbudgets",), *READ, "create", "delete"),
    # Questions about migrations: answered, and after a while cleared away.
    _rule("herder.dev", ("migrationreviews",), *READ, "delete"),
    _rule("herder.dev", ("migrationreviews/status",), "patch"),
    # An owner reference that keeps its owner from going takes this right over the owner.
    _rule("kubevirt.io", ("virtualmachines/finalizers", "virtualmachineinstances/finalizers"), "update"),
    _rule("cdi.kubevirt.io", ("datavolumes",), *READ, "create"),
    # Pools: their machines, the templates that these had, and the disks that outlive a machine. A disk is given to the pool,
    # and back to the machine, by its owner references.
    _rule("kubevirt.io", ("virtualmachinepools",), *READ, "patch"),
    _rule("kubevirt.io", ("virtualmachinepools/status",), "patch"),
    _rule("kubevirt.io", ("virtualmachinepools/finalizers",), "update"),
    _rule("kubevirt.io", ("virtualmachines",), "create", "patch", "delete"),
    _rule("apps", ("controllerrevisions",), *READ, "create", "patch", "delete"),
    _rule("cdi.kubevirt.io", ("datavolumes",), "patch", "delete"),
    # Reservations: placed, followed, and after a while cleared away; whose they are, and how important.
    _rule("scheduling.koordinator.sh", ("reservations",), *READ, "delete"),
    _rule("scheduling.koordinator.sh", ("reservations/status",), "patch"),
    _rule("scheduling.koordinator.sh", ("podmigrationjobs",), *READ),
    _rule("scheduling.k8s.io", ("priorityclasses",), *READ),
    # Volumes: made for claims, filled for DataVolumes, and cleared away.
    _rule("cdi.kubevirt.io", ("datavolumes/status",), "patch"),
    _rule("cdi.kubevirt.io", ("datavolumes/finalizers",), "update"),
    _rule("", ("persistentvolumeclaims",), "create"),
    # With memory of a machine that nobody may go on from any more.
    _rule("", ("persistentvolumeclaims",), "delete"),
    # A claim that asks for more is told what it has by now.
    _rule("", ("persistentvolumeclaims/status",), "patch"),
    _rule("", ("persistentvolumes",), *READ, "create", "patch", "delete"),
    _rule("", ("persistentvolumes/finalizers",), "update"),
    _rule("storage.k8s.io", ("storageclasses",), *READ),
    _rule("", ("pods",), *READ, "create", "patch", "delete"),
    _rule("", ("pods/status",), "patch"),
    _rule("", ("pods/binding",), "create"),
    _rule("", ("nodes", "namespaces", "persistentvolumeclaims", "secrets", "configmaps"), *READ),
    # Their host-model migratability level, as a label.
    _rule("", ("nodes",), "patch"),
    # The scheduler marks a claim that waits for its first pod with that pod's node.
    _rule("", ("persistentvolumeclaims",), "patch"),
    # PodMigrationJobs: the jobs, the room that they reserve, and the pods that they evict.
    _rule("scheduling.koordinator.sh", ("podmigrationjobs",), "patch", "delete"),
    _rule("scheduling.koordinator.sh", ("reservations",), "create", "patch"),
    _rule("scheduling.koordinator.sh", ("podmigrationjobs/status",), "patch"),
    _rule("scheduling.koordinator.sh", ("podmigrationjobs/finalizers", "reservations/finalizers"), "update"),
    _rule("", ("pods/eviction",), "create"),
    # Whether who files a job may evict its pod.
    _rule("authorization.k8s.io", ("subjectaccessreviews",), "create"),
    # What a pod belongs to, how many there should be of it, and what may not be disturbed.
    _rule("apps", ("deployments", "replicasets", "statefulsets", "daemonsets"), *READ),
    _rule("", ("replicationcontrollers",), *READ),
    _rule("*", ("*/scale",), "get"),
    _rule("policy.kruise.io", ("podunavailablebudgets",), *READ),
    # To register the webhook; and to see that it is: without it no job is carried out.
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["validatingwebhookconfigurations"],
        "resourceNames": [PRODUCT],
        "verbs": ["list", "watch"],
    },
    _rule("admissionregistration.k8s.io", (f"{kind}webhookconfigurations" for kind in ("validating", "mutating")), *_KEEP),
]
# What a real cluster has its own controllers for, with rights of their own: only in the embedded engine, by a role of its own.
EMBEDDED_ONLY: Final[list[Document]] = [
    _rule("apps", ("deployments",), *READ),
    _rule("apps", ("replicasets",), *READ, "create", "patch", "delete"),
    _rule("apps", ("deployments/status", "replicasets/status"), "patch"),
    _rule("apps", ("deployments/finalizers", "replicasets/finalizers"), "update"),
    _rule("apps", ("statefulsets",), *READ),
    _rule("apps", ("statefulsets/status",), "patch"),
    # Claims are given to the set or to the pod that they are to go with.
    _rule("apps", ("statefulsets/finalizers",), "update"),
    _rule("", ("pods/finalizers",), "update"),
    # Autoscalers: what pods use, and the number of whatever they scale.
    _rule("autoscaling", ("horizontalpodautoscalers",), *READ),
    _rule("autoscaling", ("horizontalpodautoscalers/status",), "patch"),
    _rule("metrics.k8s.io", ("pods",), "get", "list"),
    _rule("*", ("*/scale",), "get", "patch"),
    # Nodes that fall silent.
    _rule("", ("nodes", "nodes/status"), "patch"),
    _rule("coordination.k8s.io", ("leases",), *READ),
]
# The certificates of the webhook, which all replicas share.
ON_SECRETS: Final[list[Document]] = [_rule("", ("secrets",), "create", "patch", "delete")]
# Where clusters keep their leases: to agree on who leads. What is to be created has no name yet.
LEASE_NAMESPACE: Final = "kube-system"
ON_LEASES: Final[list[Document]] = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "patch"], "resourceNames": [ACCOUNT]},
]


def documents() -> list[Document]:
    return account_documents(ACCOUNT, _NAME, EVERYWHERE, {LEASE_NAMESPACE: ON_LEASES, SYSTEM_NAMESPACE: ON_SECRETS})


def embedded_documents() -> list[Document]:
    """What the account may do beyond that where the engine is the embedded one."""
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM_NAMESPACE}
    name = f"{_NAME}:embedded"
    return [
        _rbac("ClusterRole", name, "", rules=EMBEDDED_ONLY),
        _rbac("ClusterRoleBinding", name, "", roleRef=_reference("ClusterRole", name), subjects=[subject]),
    ]


def account_documents(account: str, role: str, everywhere: list[Document], within: dict[str, list[Document]]) -> list[Document]:
    """The account first, then its roles (for everywhere, and for single namespaces), then what binds them to it."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}
    bound = {"roleRef": _reference("Role", role), "subjects": [subject]}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(account, SYSTEM_NAMESPACE)},
        _rbac("ClusterRole", role, "", rules=everywhere),
        *(_rbac("Role", role, namespace, rules=rules) for namespace, rules in within.items()),
        _rbac("ClusterRoleBinding", role, "", roleRef=_reference("ClusterRole", role), subjects=[subject]),
        *(_rbac("RoleBinding", role, namespace, **bound) for namespace in within),
    ]


def _rbac(kind: str, name: str, namespace: str, **fields: Any) -> Document:
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": _metadata(name, namespace), **fields}


def _reference(kind: str, name: str) -> Document:
    return {"apiGroup": _GROUP, "kind": kind, "name": name}


def _metadata(name: str, namespace: str) -> Document:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "labels": {PART_OF: PRODUCT}}
