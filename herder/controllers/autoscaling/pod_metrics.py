"""What the pods of a target use, asked of metrics.k8s.io as anybody would: one list for all of them."""

from __future__ import annotations

from herder.api.core import PodMetrics
from herder.api.duration import parse_seconds
from herder.api.quantity import parse_quantity
from herder.kube.client import Client, Selection
from herder.kube.errors import ApiStatusError
from herder.kube.resources import POD_METRICS
from herder.rules.autoscaling import Usage


async def usage_of(client: Client, namespace: str, selector: str) -> dict[str, Usage] | str:
    """By the name of the pod; or why nothing is known, in Kubernetes' words."""
    try:
        listed = await client.list(POD_METRICS, Selection(namespace, selector))
    except ApiStatusError as error:
        return f"unable to fetch metrics from resource metrics API: {error}"
    if not listed.items:
        return "no metrics returned from resource metrics API"
    return {one.name: read_usage(one) for one in listed.items}


def read_usage(metrics: PodMetrics) -> Usage:
    """A resource that one of the containers does not tell of is not known of the pod."""
    known = [set(container.usage) for container in metrics.containers]
    amounts = {
        name: sum(parse_quantity(container.usage[name]).milli_value() for container in metrics.containers)
        for name in sorted(set[str]().union(*known))
        if all(name in names for names in known)
    }
    at = metrics.timestamp.timestamp() if metrics.timestamp is not None else 0.0
    return Usage(at, parse_seconds(metrics.window or "0s"), amounts)
