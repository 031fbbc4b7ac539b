"""`/metrics/resource`: the names, labels and times that a kubelet's has, so that a metrics-server can read it."""

from __future__ import annotations

from collections.abc import Iterator

from herder.nodes.endpoint.usage import NodeUsage, PodUsage

# In one question; their names are in its head, which has its bound, too.
MOST_NODES = 100
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# In the order of their names, as Prometheus writes them.
FAMILIES = {
    "container_cpu_usage_seconds_total": ("counter", "Processor time that the container has taken, in seconds of one processor"),
    "container_memory_working_set_bytes": ("gauge", "Memory that the container works with, in bytes"),
    "container_start_time_seconds": ("gauge", "When the container was started, in seconds since the epoch"),
    "node_cpu_usage_seconds_total": ("counter", "Processor time that the pods of the node have taken, in seconds of one processor"),
    "node_memory_working_set_bytes": ("gauge", "Memory that the pods of the node work with, in bytes"),
    "pod_cpu_usage_seconds_total": ("counter", "Processor time that the pod has taken, in seconds of one processor"),
    "pod_memory_working_set_bytes": ("gauge", "Memory that the pod works with, in bytes"),
    "resource_scrape_error": ("gauge", "1 where what the node uses could not be found out, else 0"),
}


def text(node: NodeUsage) -> str:
    at = round(node.at * 1000)
    samples: dict[str, list[str]] = {name: [] for name in FAMILIES}
    for name, labels, value in _samples(node):
        samples[name].append(f"{name}{labels} {value}" if name in _UNTIMED else f"{name}{labels} {value} {at}")
    heads = ((f"# HELP {name} {words}", f"# TYPE {name} {kind}") for name, (kind, words) in FAMILIES.items())
    lines = [line for head, found in zip(heads, samples.values(), strict=True) if found for line in (*head, *found)]
    return "\n".join(lines) + "\n"


def part(node: NodeUsage) -> str:
    """Of an answer for several nodes, which no kubelet gives: so the engine asks our own agents, who are thousands of them."""
    return f"# node {node.node}\n{text(node)}"


# What was so all the time; the others are of the moment at which they were read.
_UNTIMED = ("container_start_time_seconds", "resource_scrape_error")


def _samples(node: NodeUsage) -> Iterator[tuple[str, str, float]]:
    yield "node_cpu_usage_seconds_total", "", node.usage.cpu_seconds
    yield "node_memory_working_set_bytes", "", node.usage.memory_bytes
    for pod in node.pods:
        yield from _of_pod(pod)
    yield "resource_scrape_error", "", 0


def _of_pod(pod: PodUsage) -> Iterator[tuple[str, str, float]]:
    """Names are what the API server lets through: none has anything in it that would end a label."""
    whose = f'namespace="{pod.namespace}",pod="{pod.name}"'
    for container in pod.containers:
        labels = f'{{container="{container.name}",{whose}}}'
        yield "container_cpu_usage_seconds_total", labels, container.usage.cpu_seconds
        yield "container_memory_working_set_bytes", labels, container.usage.memory_bytes
        if pod.started_at > 0:
            yield "container_start_time_seconds", labels, pod.started_at
    yield "pod_cpu_usage_seconds_total", f"{{{whose}}}", pod.usage.cpu_seconds
    yield "pod_memory_working_set_bytes", f"{{{whose}}}", pod.usage.memory_bytes
