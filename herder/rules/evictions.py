"""What an eviction of a machine's pod does: by its strategy it is let go, or it stays and its guest is moved."""

from __future__ import annotations

import msgspec

from herder.api import labels, reasons
from herder.api.core import Pod
from herder.api.kinds import VirtualMachineInstance
from herder.api.kinds.instance import EvictionStrategy
from herder.rules.plans import find

FINISHED = ("Succeeded", "Failed")


class Eviction(msgspec.Struct, frozen=True):
    """Allowed where nothing speaks against it."""

    refused: str = ""
    # The instance shall leave this node: by us, or (External) by who watches for it.
    evacuate: str = ""


def strategy_of(instance: VirtualMachineInstance, default: EvictionStrategy) -> EvictionStrategy:
    return instance.spec.eviction_strategy or default


def why_not_movable(instance: VirtualMachineInstance) -> str:
    """Empty where it can be moved."""
    found = find(instance.status.conditions if instance.status else None, reasons.LIVE_MIGRATABLE)
    if found is not None and found.status == "True":
        return ""
    return f"{found.reason}: {found.message}" if found is not None else "it does not run yet"


def judge_eviction(pod: Pod, instance: VirtualMachineInstance | None, default: EvictionStrategy) -> Eviction:
    """Of a launcher pod. One whose instance is gone, or that has ended, is nobody's loss."""
    if instance is None or pod.controller_uid != instance.uid or pod.being_deleted or pod.status.phase in FINISHED:
        return Eviction()
    strategy = strategy_of(instance, default)
    if strategy == "None":
        return Eviction()
    if _is_coming(pod, instance):
        return Eviction(f"pod {pod.name} waits for the guest of {instance.name}; it cannot be evicted before that is over")
    node = pod.spec.node_name
    if strategy == "External":
        return Eviction(f"{instance.name} has the eviction strategy External: it is left to who handles it", node)
    why = why_not_movable(instance)
    if not why:
        return Eviction(f"{instance.name} is moved to another node instead (eviction strategy {strategy}); try again later", node)
    if strategy == "LiveMigrateIfPossible":
        return Eviction()
    said = f"{instance.name} must be moved and not ended (eviction strategy LiveMigrate), and it cannot be moved: {why}"
    return Eviction(f"{said}; stop it, or change its evictionStrategy")


def _is_coming(pod: Pod, instance: VirtualMachineInstance) -> bool:
    known = instance.status.launcher_pod_name if instance.status else None
    return labels.MIGRATION_UID in pod.labels and pod.name != known
