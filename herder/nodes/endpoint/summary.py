"""`/stats/summary`: the same numbers in a kubelet's JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from herder.api.world import timestamp
from herder.nodes.endpoint.usage import ContainerUsage, NodeUsage, PodUsage
from herder.nodes.runtimes.base import Usage

Document = dict[str, Any]


def encoded(node: NodeUsage) -> bytes:
    return msgspec.json.encode(summary(node)) + b"\n"


def summary(node: NodeUsage) -> Document:
    at = timestamp(node.at)
    itself = {"nodeName": node.node, "startTime": timestamp(node.measured_since), **_stats(node.usage, at)}
    return {"node": itself, "pods": [_pod(pod, at) for pod in node.pods]}


def _pod(pod: PodUsage, at: str) -> Document:
    return {
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": timestamp(pod.started_at),
        "containers": [_container(one, pod, at) for one in pod.containers],
        **_stats(pod.usage, at),
    }


def _container(container: ContainerUsage, pod: PodUsage, at: str) -> Document:
    return {"name": container.name, "startTime": timestamp(pod.started_at), **_stats(container.usage, at)}


def _stats(usage: Usage, at: str) -> Document:
    return {
        "cpu": {"time": at, "usageCoreNanoSeconds": round(usage.cpu_seconds * 1e9)},
        "memory": {"time": at, "workingSetBytes": usage.memory_bytes},
    }
