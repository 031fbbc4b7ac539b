"""Writes herder/server/builtin_schemas.json: what the pinned kube-apiserver says about the shape of the built-in kinds.

    .venv/bin/python tools/kube/schemas.py

Facts carry over (types, formats, defaults, enums, list types, patch strategies), sentences do not: every description is dropped.
The file is the same on every run of the same release, so a diff shows what a new release changed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from apiserver import Server, running_server

TARGET = Path(__file__).resolve().parents[2] / "herder" / "server" / "builtin_schemas.json"
REFERENCE = "#/components/schemas/"

# path under /openapi/v3: the kinds that the embedded engine serves, and the bodies that it reads (options, reviews, scale).
WANTED: dict[str, tuple[str, ...]] = {
    "api/v1": (
        "Pod", "Node", "Namespace", "PersistentVolumeClaim", "PersistentVolume", "Secret", "ConfigMap", "Event",
        "ServiceAccount", "Binding", "PodTemplate",
        "DeleteOptions", "Status",
        "policy/v1/Eviction", "authentication.k8s.io/v1/TokenRequest",  # described where their subresources are
    ),
    "apis/apps/v1": ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision", "autoscaling/v1/Scale"),
    "apis/autoscaling/v2": ("HorizontalPodAutoscaler",),
    "apis/batch/v1": ("Job", "CronJob"),
    "apis/policy/v1": ("PodDisruptionBudget",),
    "apis/scheduling.k8s.io/v1": ("PriorityClass",),
    "apis/storage.k8s.io/v1": ("StorageClass",),
    "apis/coordination.k8s.io/v1": ("Lease",),
    "apis/events.k8s.io/v1": ("Event",),
    "apis/rbac.authorization.k8s.io/v1": ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"),
    "apis/apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "apis/authentication.k8s.io/v1": ("TokenReview", "SelfSubjectReview"),
    "apis/authorization.k8s.io/v1": (
        "SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectRulesReview",
    ),
}  # fmt: skip

DROPPED = ("description", "externalDocs", "example", "title")


def main() -> None:
    with running_server() as server:
        components = collect(server)
    text = json.dumps(components, sort_keys=True, separators=(",", ":"))
    TARGET.write_text(text + "\n")
    print(f"{TARGET.name}: {len(components)} components, {len(text):,} bytes")


def collect(server: Server) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for path, kinds in WANTED.items():
        everything = server.request("GET", f"/openapi/v3/{path}")["components"]["schemas"]
        for kind in kinds:
            named = tuple(kind.split("/")) if "/" in kind else (*_group_version(path), kind)
            _take(_component(everything, named), everything, chosen)
    return chosen


def _group_version(path: str) -> tuple[str, str]:
    parts = path.split("/")
    return ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])


def _component(everything: dict[str, Any], wanted: tuple[str, ...]) -> str:
    for name, schema in everything.items():
        for claimed in schema.get("x-kubernetes-group-version-kind", ()):
            if (claimed["group"], claimed["version"], claimed["kind"]) == wanted:
                return name
    raise SystemExit(f"no component says that it is {'/'.join(wanted)}")


def _take(name: str, everything: dict[str, Any], chosen: dict[str, Any]) -> None:
    if name in chosen:
        return
    chosen[name] = bare = _bare(everything[name])
    for reference in _references(bare):
        _take(reference, everything, chosen)


def _bare(schema: Any, is_names: bool = False) -> Any:
    """The schema without its sentences. `is_names`: the keys are field names, so a field called description stays."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if is_names or key not in DROPPED}
    return {
        key: value if key in ("default", "enum") and not is_names else _bare(value, key == "properties" and not is_names)
        for key, value in kept.items()
    }


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [found for one in schema for found in _references(one)]
    if not isinstance(schema, dict):
        return []
    found = [found for value in schema.values() for found in _references(value)]
    reference = schema.get("$ref")
    if isinstance(reference, str):
        found.append(reference.removeprefix(REFERENCE))
    return found


if __name__ == "__main__":
    main()
