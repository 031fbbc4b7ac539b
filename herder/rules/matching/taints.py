"""Which taints keep a pod away from a node."""

from __future__ import annotations

from collections.abc import Iterable

from herder.api.core.nodes import Taint
from herder.api.meta import Toleration

KEEPS_AWAY = ("NoSchedule", "NoExecute")


def untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """The first that keeps the pod away; None where nothing does."""
    for taint in taints:
        if taint.effect in KEEPS_AWAY and not any(tolerates(one, taint) for one in tolerations):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        return True
    # Without a key only Exists makes sense: it stands for every taint.
    return bool(toleration.key) and operator == "Equal" and (toleration.value or "") == taint.value
