"""The roles and bindings that every cluster has, so that what people know of Kubernetes holds here, too."""

from __future__ import annotations

from typing import Any, Final

from herder.api import roles as ours
from herder.api.roles import READ, WRITE
from herder.server.access.rbac import GROUP
from herder.server.request import AUTHENTICATED, MASTERS, UNAUTHENTICATED

Document = dict[str, Any]

READ_WRITE: Final = (*READ, *WRITE)
PUBLIC: Final = ("/livez", "/readyz", "/healthz", "/version", "/version/")
AGGREGATE: Final = f"{GROUP}/aggregate-to-"
AUTO_UPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_SCALED: Final = ("deployments", "replicasets", "statefulsets")


def _rule(verbs: tuple[str, ...], groups: tuple[str, ...], *resources: str) -> Document:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def _paths(*paths: str, verbs: tuple[str, ...] = ("get",)) -> Document:
    return {"nonResourceURLs": list(paths), "verbs": list(verbs)}


def _with(resources: tuple[str, ...], *subresources: str) -> tuple[str, ...]:
    return (*resources, *(f"{resource}/{subresource}" for resource in resources for subresource in subresources))


def _role(name: str, rules: list[Document], aggregated_to: str = "", gathers: str = "") -> Document:
    labels = {**_LABELS, **({AGGREGATE + aggregated_to: "true"} if aggregated_to else {})}
    metadata = {"name": name, "labels": labels, "annotations": {AUTO_UPDATE: "true"}}
    role: Document = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    if gathers:
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE + gathers: "true"}}]}
    return role


def _view() -> list[Document]:
    core = ("",)
    return [
        _rule(READ, core, "configmaps", "endpoints", "serviceaccounts", "services", "services/status"),
        _rule(READ, core, *_with(("persistentvolumeclaims", "pods", "replicationcontrollers"), "status")),
        _rule(READ, core, "bindings", "limitranges", "namespaces/status", "pods/log", "replicationcontrollers/scale"),
        _rule(READ, core, "resourcequotas", "resourcequotas/status"),
        _rule(READ, core, "namespaces"),
        _rule(READ, ("", "events.k8s.io"), "events"),
        _rule(READ, ("discovery.k8s.io",), "endpointslices"),
        _rule(READ, ("apps",), "controllerrevisions", "daemonsets", "daemonsets/status", *_with(_SCALED, "status", "scale")),
        _rule(READ, ("autoscaling",), "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
        _rule(READ, ("batch",), *_with(("cronjobs", "jobs"), "status")),
        _rule(READ, ("policy",), "poddisruptionbudgets", "poddisruptionbudgets/status"),
        _rule(READ, ("networking.k8s.io",), "ingresses", "ingresses/status", "networkpolicies"),
    ]


def _edit() -> list[Document]:
    core = ("",)
    reached = ("pods/attach", "pods/exec", "pods/portforward", "pods/proxy")
    return [
        _rule(READ, core, *reached, "secrets", "services/proxy"),
        _rule(("impersonate",), core, "serviceaccounts"),
        _rule(WRITE, core, "pods", *reached),
        _rule(("create",), core, "pods/eviction"),
        _rule(WRITE, core, "configmaps", "persistentvolumeclaims", "replicationcontrollers", "replicationcontrollers/scale"),
        _rule(WRITE, core, "secrets", "serviceaccounts", "services", "services/proxy"),
        _rule(("create",), core, "serviceaccounts/token"),
        _rule(WRITE, ("", "events.k8s.io"), "events"),
        _rule(WRITE, ("apps",), "daemonsets", "deployments/rollback", *_with(_SCALED, "scale")),
        _rule(WRITE, ("autoscaling",), "horizontalpodautoscalers"),
        _rule(WRITE, ("batch",), "cronjobs", "jobs"),
        _rule(WRITE, ("policy",), "poddisruptionbudgets"),
        _rule(WRITE, ("networking.k8s.io",), "ingresses", "networkpolicies"),
        _rule(READ_WRITE, ("coordination.k8s.io",), "leases"),
    ]


def cluster_roles() -> list[Document]:
    everything = [_rule(("*",), ("*",), "*"), _paths("*", verbs=("*",))]
    found = ("/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*")
    watched = ("/metrics", "/metrics/slis", *(f"/{name}{more}" for more in ("", "/*") for name in ("livez", "readyz", "healthz")))
    asked = ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
    basic = [
        _rule(("create",), ("authorization.k8s.io",), *asked),
        _rule(("create",), ("authentication.k8s.io",), "selfsubjectreviews"),
    ]
    grant = [
        _rule(("create",), ("authorization.k8s.io",), "localsubjectaccessreviews"),
        _rule(READ_WRITE, (GROUP,), "rolebindings", "roles"),
    ]
    delegate = [
        _rule(("create",), ("authentication.k8s.io",), "tokenreviews"),
        _rule(("create",), ("authorization.k8s.io",), "subjectaccessreviews"),
    ]
    return [
        _role("cluster-admin", everything),
        _role("system:discovery", [_paths(*PUBLIC, *found)]),
        _role("system:monitoring", [_paths(*watched), _rule(("get",), ("",), "nodes/metrics")]),
        _role("system:basic-user", basic),
        _role("system:public-info-viewer", [_paths(*PUBLIC)]),
        _role("system:auth-delegator", delegate),
        _role("system:aggregate-to-view", _view(), "view"),
        _role("system:aggregate-to-edit", _edit(), "edit"),
        _role("system:aggregate-to-admin", grant, "admin"),
        _role("system:aggregated-metrics-reader", [_rule(READ, ("metrics.k8s.io",), "nodes", "pods")], "view"),
        _role("view", [], "edit", gathers="view"),
        _role("edit", [], "admin", gathers="edit"),
        _role("admin", [], gathers="admin"),
        *ours.roles(),
    ]


def cluster_role_bindings() -> list[Document]:
    return [
        _binding("cluster-admin", MASTERS),
        _binding("system:monitoring", "system:monitoring"),
        _binding("system:discovery", AUTHENTICATED),
        _binding("system:basic-user", AUTHENTICATED),
        _binding("system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED),
    ]


def _binding(role: str, *groups: str) -> Document:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": dict(_LABELS), "annotations": {AUTO_UPDATE: "true"}},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": group} for group in groups],
    }
