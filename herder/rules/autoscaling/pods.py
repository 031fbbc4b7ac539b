"""Which pods count for a decision, and how much each asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from herder.api.core import Pod
from herder.api.core.containers import Container
from herder.api.core.pods import PodCondition
from herder.api.quantity import parse_quantity
from herder.rules.autoscaling.snapshot import Usage
from herder.rules.matching.resources import CPU, pod_requests

# As kube-controller-manager has them by default. A pod that starts uses more of the processor than it will later: that long its
# samples count only once it is ready, and a whole window of them was taken since.
CPU_INITIALIZATION_PERIOD = 300.0
# After that a pod that is not ready is left out only if it has never been: if it became unready within this time of its start.
DELAY_OF_INITIAL_READINESS = 30.0


class MissingRequest(Exception):
    """A pod does not say how much it asks for: there is nothing to take a percentage of."""


class Groups(msgspec.Struct, frozen=True):
    """Names of pods. Those in `ready` count; nothing is known of those in `missing`; those in `unready` cannot tell yet. Pods that
    have failed or are going are in none of them."""

    ready: list[str]
    unready: list[str]
    missing: list[str]


def group_pods(pods: Iterable[Pod], usage: Mapping[str, Usage], resource: str, now: float) -> Groups:
    ready: list[str] = []
    unready: list[str] = []
    missing: list[str] = []
    for pod in pods:
        metadata, phase = pod.metadata, pod.status.phase
        if phase == "Failed" or metadata.deletion_timestamp is not None:
            continue
        name = metadata.name or ""
        used = usage.get(name)
        if phase == "Pending":
            unready.append(name)
        elif used is None or resource not in used.amounts:
            missing.append(name)
        elif resource == CPU and is_unready(pod, used, now):
            unready.append(name)
        else:
            ready.append(name)
    return Groups(ready, unready, missing)


def is_unready(pod: Pod, used: Usage, now: float) -> bool:
    """Whether what it uses of the processor tells nothing of what it will use."""
    condition, start = _ready_condition(pod), pod.status.start_time
    if condition is None or start is None:
        return True
    not_ready, started = condition.status == "False", start.timestamp()
    is_young = started + CPU_INITIALIZATION_PERIOD > now
    if not is_young and not not_ready:
        return False
    changed = condition.last_transition_time.timestamp() if condition.last_transition_time is not None else 0.0
    if is_young:
        return not_ready or used.at < changed + used.window
    return started + DELAY_OF_INITIAL_READINESS > changed


def _ready_condition(pod: Pod) -> PodCondition | None:
    """Without a generator: every pod is looked at every 15 seconds."""
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition
    return None


def requests_of(pods: Iterable[Pod], resource: str) -> dict[str, int]:
    """In thousandths, by name. Raises MissingRequest where one of them, whatever becomes of it, says nothing."""
    return {pod.metadata.name or "": _request(pod, resource) for pod in pods}


def _request(pod: Pod, resource: str) -> int:
    if pod.spec.resources is not None and pod.spec.resources.requests:
        return _pod_level_request(pod, resource)
    total = 0
    for container in pod.spec.containers or ():
        total += _own_request(container, resource, pod)
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            total += _own_request(container, resource, pod)
    return total


def _own_request(container: Container, resource: str, pod: Pod) -> int:
    written = container.resources.requests.get(resource)
    if written is None:
        raise MissingRequest(f"missing request for {resource} in container {container.name} of Pod {pod.name}")
    return _thousandths(written)


@lru_cache(maxsize=4096)
def _thousandths(written: str | int) -> int:
    """Pods of one template ask for the same, again and again."""
    return parse_quantity(written).milli_value()


def _pod_level_request(pod: Pod, resource: str) -> int:
    amount = pod_requests(pod).get(resource)
    if amount is None:
        raise MissingRequest(f"missing pod-level request for {resource} in Pod {pod.name}")
    return amount if resource == CPU else amount * 1000
