"""The built-in resources that the engine serves, as a real API server's discovery shows them.

Their schemas are looked up by (group, version, kind) in `builtin_schemas`; `openapi` stays None here.
"""

from __future__ import annotations

from typing import Any

from herder.server.resources import ALL_VERBS, Resource, Scale

# A namespace is emptied one by one, never as a collection.
NAMESPACE_VERBS = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")

# `spec.selector` of a built-in is a label selector object; the scale subresource shows it as text.
WORKLOAD_SCALE = Scale(spec_replicas="spec.replicas", status_replicas="status.replicas", label_selector="spec.selector")

RBAC = "rbac.authorization.k8s.io"
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


def _resource(
    group: str, kind: str, plural: str, short: str = "", *, version: str = "v1", namespaced: bool = True, **more: Any
) -> Resource:
    return Resource(
        group=group,
        version=version,
        plural=plural,
        singular=kind.lower(),
        kind=kind,
        list_kind=f"{kind}List",
        namespaced=namespaced,
        short_names=tuple(short.split()),
        **more,
    )


def _core() -> tuple[Resource, ...]:
    return (
        _resource("", "Binding", "bindings", verbs=("create",)),
        _resource("", "ConfigMap", "configmaps", "cm"),
        _resource("", "Event", "events", "ev"),
        _resource("", "Namespace", "namespaces", "ns", namespaced=False, status=True, finalize=True, verbs=NAMESPACE_VERBS),
        _resource("", "Node", "nodes", "no", namespaced=False, status=True),
        _resource("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", status=True),
        _resource("", "PersistentVolume", "persistentvolumes", "pv", namespaced=False, status=True),
        _resource(
            *("", "Pod", "pods", "po"),
            status=True,
            actions=("binding", "eviction"),
            connects=("attach", "exec", "log", "portforward"),
            categories=("all",),
        ),
        _resource("", "Secret", "secrets"),
        _resource("", "ServiceAccount", "serviceaccounts", "sa", token=True),
    )


def _workloads() -> tuple[Resource, ...]:
    everything = ("all",)
    return (
        _resource("apps", "ControllerRevision", "controllerrevisions"),
        _resource("apps", "DaemonSet", "daemonsets", "ds", status=True, categories=everything),
        _resource("apps", "Deployment", "deployments", "deploy", status=True, scale=WORKLOAD_SCALE, categories=everything),
        _resource("apps", "ReplicaSet", "replicasets", "rs", status=True, scale=WORKLOAD_SCALE, categories=everything),
        _resource("apps", "StatefulSet", "statefulsets", "sts", status=True, scale=WORKLOAD_SCALE, categories=everything),
        _resource("events.k8s.io", "Event", "events", "ev", storage_version="v1"),
        *_reviews(),
        _resource(
            *("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"),
            version="v2",
            status=True,
            categories=everything,
        ),
        _resource("batch", "CronJob", "cronjobs", "cj", status=True, categories=everything),
        _resource("batch", "Job", "jobs", status=True, categories=everything),
        _resource("policy", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", status=True),
    )


def _review(group: str, kind: str, *, namespaced: bool = False) -> Resource:
    return _resource(group, kind, f"{kind.lower()}s", namespaced=namespaced, verbs=("create",), review=True)


def _reviews() -> tuple[Resource, ...]:
    return (
        _review(AUTHENTICATION, "SelfSubjectReview"),
        _review(AUTHENTICATION, "TokenReview"),
        _review(AUTHORIZATION, "LocalSubjectAccessReview", namespaced=True),
        _review(AUTHORIZATION, "SelfSubjectAccessReview"),
        _review(AUTHORIZATION, "SelfSubjectRulesReview"),
        _review(AUTHORIZATION, "SubjectAccessReview"),
    )


def _cluster() -> tuple[Resource, ...]:
    return (
        _resource(RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
        _resource(RBAC, "ClusterRole", "clusterroles", namespaced=False),
        _resource(RBAC, "RoleBinding", "rolebindings"),
        _resource(RBAC, "Role", "roles"),
        _resource("storage.k8s.io", "StorageClass", "storageclasses", "sc", namespaced=False),
        _resource(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            "crd crds",
            namespaced=False,
            status=True,
            categories=("api-extensions",),
        ),
        _resource("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc", namespaced=False),
        _resource("coordination.k8s.io", "Lease", "leases"),
    )


# The order of the groups is the order in which discovery lists them.
BUILTINS: tuple[Resource, ...] = (*_core(), *_workloads(), *_cluster())

# One line each for `kubectl explain`; the built-in schemas themselves carry no prose.
DESCRIPTIONS: dict[tuple[str, str], str] = {
    ("", "Binding"): "Says on which node a pod is to run.",
    ("", "ConfigMap"): "Settings that are no secret, as text or bytes by key.",
    ("", "Event"): "Something that happened to an object, told by whoever saw it.",
    ("", "Namespace"): "A room for names: objects in it are named, listed and deleted together.",
    ("", "Node"): "A machine that pods and virtual machines run on.",
    ("", "PersistentVolumeClaim"): "A request for storage, and the volume that was found for it.",
    ("", "PersistentVolume"): "A piece of storage that outlives the pods that use it.",
    ("", "Pod"): "Containers that run together on one node.",
    ("", "Secret"): "Passwords, keys and certificates, as bytes by key.",
    ("", "ServiceAccount"): "An identity for programs.",
    ("apps", "ControllerRevision"): "An unchanging copy of a controller's state at one point of its history.",
    ("apps", "DaemonSet"): "One pod on each node that is fit for it.",
    ("apps", "Deployment"): "Interchangeable pods, and how to roll from one version of them to the next.",
    ("apps", "ReplicaSet"): "A number of interchangeable pods that is kept up.",
    ("apps", "StatefulSet"): "Pods with lasting names and storage, started and stopped in order.",
    ("autoscaling", "HorizontalPodAutoscaler"): "Scales something by what its pods use.",
    ("batch", "CronJob"): "Jobs that are started by the clock.",
    ("batch", "Job"): "Pods that run to their end, until so many of them have.",
    ("policy", "PodDisruptionBudget"): "How many of a set of pods may be away at once by somebody's choice.",
    ("events.k8s.io", "Event"): "Something that happened to an object, told by whoever saw it.",
    (RBAC, "ClusterRoleBinding"): "Grants a cluster role everywhere to users, groups and service accounts.",
    (RBAC, "ClusterRole"): "Rules of what may be done, for all namespaces and for what has none.",
    (RBAC, "RoleBinding"): "Grants a role within one namespace to users, groups and service accounts.",
    (RBAC, "Role"): "Rules of what may be done within one namespace.",
    ("storage.k8s.io", "StorageClass"): "A kind of storage that claims may ask for, and who provides it.",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "Teaches the API a new kind of object.",
    ("scheduling.k8s.io", "PriorityClass"): "A named priority that pods may have.",
    (AUTHENTICATION, "SelfSubjectReview"): "Asks who one is to the server.",
    (AUTHENTICATION, "TokenReview"): "Asks whose a token is, and whether it is still good.",
    (AUTHORIZATION, "LocalSubjectAccessReview"): "Asks whether somebody may do something in one namespace.",
    (AUTHORIZATION, "SelfSubjectAccessReview"): "Asks whether one may do something.",
    (AUTHORIZATION, "SelfSubjectRulesReview"): "Asks for everything that one may do in a namespace.",
    (AUTHORIZATION, "SubjectAccessReview"): "Asks whether somebody may do something.",
    ("coordination.k8s.io", "Lease"): "Who holds a role, and until when.",
}
