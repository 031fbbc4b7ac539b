"""Which pods go first when there are too many: those that would be missed least. The order is that of Kubernetes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from herder.api.core import Pod
from herder.rules.workloads.pods import is_active, is_ready, ready_since

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"": 0, "Pending": 0, "Unknown": 1, "Running": 2}
_MAX_INT32 = 2**31 - 1
Rank = tuple[bool, int, bool, int, int, float, int, float, str]


def first_to_go(pods: Sequence[Pod], related: Iterable[Pod], count: int, now: float) -> list[Pod]:
    """`related`: the pods of all sets of the same owner; where many of them share a node, one of those is missed least."""
    crowds = Counter(pod.spec.node_name for pod in related if is_active(pod))
    return sorted(pods, key=lambda pod: _rank(pod, crowds[pod.spec.node_name], now))[:count]


def _rank(pod: Pod, crowd: int, now: float) -> Rank:
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 2),
        is_ready(pod),
        deletion_cost(pod),
        -crowd,
        _age(ready_since(pod), now) if is_ready(pod) else -1.0,
        -max((one.restart_count for one in pod.status.container_statuses), default=0),
        _age(created.timestamp() if created is not None else None, now),
        pod.uid,
    )


def _age(since: float | None, now: float) -> float:
    """Younger ones go first; but only by orders of magnitude, so that it is not always the latest that suffers. Among those of
    about one age the uid decides, which is chance."""
    if since is None:
        return -2.0
    return float(int(math.log2((now - since) * 1e9))) if now > since else -1.0


def deletion_cost(pod: Pod) -> int:
    """What people think of it; what is no number of 32 bits counts as nothing."""
    text = pod.annotations.get(DELETION_COST, "")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (len(digits) > 1 and digits.startswith("0")):
        return 0
    cost = int(text)
    return cost if -_MAX_INT32 - 1 <= cost <= _MAX_INT32 else 0
