"""What is written: pods with the fields that real ones have, so that defaults, validation and managed fields have work to do."""

from typing import Any

import msgspec

Json = dict[str, Any]
NAMESPACE = "bench"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MARK_DIGITS = 8
_PADDING = "bench.herder.dev/padding"


def namespace() -> bytes:
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})


def pod(name: str, size: int, *, unlike: bool = False, scheduler: str = "") -> bytes:
    """A pod whose JSON, as sent, has this many bytes. `unlike`: with a spec that no other pod has."""
    document = _pod(name)
    if scheduler:
        document["spec"]["schedulerName"] = scheduler
    if unlike:
        document["spec"]["containers"][0]["args"].append(f"--name={name}")
    document["metadata"]["annotations"][_PADDING] = "x" * (size - len(msgspec.json.encode(document)))
    return msgspec.json.encode(document)


class Pods:
    """Many pods alike for the price of one: the client should spend its time on sending them."""

    _NAME = "@@@@@@@@@@@@"

    def __init__(self, size: int, *, unlike: bool = False, scheduler: str = "") -> None:
        self._parts = pod(self._NAME, size, unlike=unlike, scheduler=scheduler).split(self._NAME.encode())

    def named(self, name: str) -> bytes:
        return name.rjust(len(self._NAME), "p").encode().join(self._parts)

    def name(self, prefix: str, number: int) -> str:
        return f"{prefix}-{number:0{len(self._NAME) - len(prefix) - 1}d}"


def status_patch(mark: int) -> bytes:
    """A merge patch as a node agent would send it; the mark makes each differ, and lets a watcher know which one it sees."""
    return msgspec.json.encode({"status": _status(mark)})


def status_apply(name: str, mark: int) -> bytes:
    """The same as a configuration to apply."""
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "status": _status(mark)})


def _status(mark: int) -> Json:
    return {
        "phase": "Running",
        "message": f"mark-{mark:0{MARK_DIGITS}d}",
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Bench"}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
    }


def _pod(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": "bench", "app.kubernetes.io/name": "bench", "tier": "backend", "pod-template-hash": "5d59d67564"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
        },
        "spec": {
            "containers": [_container("main", 8080), _container("sidecar", 9090)],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "settings"}}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "bench", "effect": "NoSchedule"}],
            "terminationGracePeriodSeconds": 30,
        },
    }


def _container(name: str, port: int) -> Json:
    return {
        "name": name,
        "image": f"registry.example.com/team/{name}:v1.2.3",
        "args": ["--listen", f"0.0.0.0:{port}", "--verbose"],
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(4)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "settings", "mountPath": "/etc/settings"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": port}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": port}, "periodSeconds": 5},
    }
