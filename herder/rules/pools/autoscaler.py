"""What a HorizontalPodAutoscaler last said about a pool, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from herder.api import reasons, registry
from herder.api.core import HorizontalPodAutoscaler
from herder.api.kinds import VirtualMachinePool
from herder.rules.plans import text_of

# Of these the first that does not hold is what keeps it from scaling.
_NEEDED = (reasons.ABLE_TO_SCALE, reasons.SCALING_ACTIVE)


def last_words(pool: VirtualMachinePool, autoscalers: Iterable[HorizontalPodAutoscaler]) -> tuple[str, ...]:
    """Of those that scale this pool, by name."""
    ours = sorted((one for one in autoscalers if _scales(one, pool)), key=lambda one: one.name)
    return tuple(_sentence(one) for one in ours)


def _scales(autoscaler: HorizontalPodAutoscaler, pool: VirtualMachinePool) -> bool:
    target = autoscaler.spec.scale_target_ref
    group = target.api_version.rpartition("/")[0]
    return (group, target.kind, target.name) == (registry.POOL.group, registry.POOL.kind, pool.name)


def _sentence(autoscaler: HorizontalPodAutoscaler) -> str:
    spec, status = autoscaler.spec, autoscaler.status
    bounds = f"between {1 if spec.min_replicas is None else spec.min_replicas} and {spec.max_replicas}"
    wants = f"wants {status.desired_replicas}" if status.conditions else "has not looked yet"
    when = f", last scaled {text_of(status.last_scale_time)}" if status.last_scale_time is not None else ""
    used = [
        f"{one.resource.name} at {one.resource.current.average_utilization}%"
        for one in status.current_metrics
        if one.resource is not None and one.resource.current.average_utilization is not None
    ]
    why = _why(autoscaler)
    parts = [f"{wants}, {bounds}{when}", *(used or []), *([why] if why else [])]
    return f"autoscaler {autoscaler.name}: {'; '.join(parts)}"


def _why(autoscaler: HorizontalPodAutoscaler) -> str:
    """What keeps it from scaling, or from going further."""
    known = {one.type: one for one in autoscaler.status.conditions}
    held = next((known[kind] for kind in _NEEDED if kind in known and known[kind].status == "False"), None)
    limited = known.get(reasons.SCALING_LIMITED)
    if held is None and limited is not None and limited.status == "True":
        held = limited
    return (held.message or held.reason or "") if held is not None else ""
