"""Whether the memory of a guest can be saved, and be gone on from, and if not, why."""

from __future__ import annotations

from herder.api import labels
from herder.api.core import Node
from herder.api.kinds import VirtualMachineInstance
from herder.api.kinds.instance import VirtualMachineInstanceSpec

LOST_WITH_NODE = "volume {name} is an emptyDisk, which is lost with the instance: memory that knows it would be of no use"


def why_never(spec: VirtualMachineInstanceSpec) -> str:
    """By what the machine is, wherever it runs. Empty where it can be."""
    for volume in spec.volumes or ():
        if volume.empty_disk is not None:
            return LOST_WITH_NODE.format(name=volume.name)
    devices = spec.domain.devices
    held = [*(devices.host_devices or ()), *(devices.gpus or ())] if devices else []
    if held:
        return f"device {held[0].name} belongs to the node, and its state cannot be saved"
    return ""


def why_not_there(node: Node) -> str:
    """By where it runs. A node that does not say is one of an earlier version, which knows nothing of it."""
    if node.labels.get(labels.SAVE_MEMORY) == "true":
        return ""
    why = node.annotations.get(labels.NO_SAVE_MEMORY) or f'its label {labels.SAVE_MEMORY} is not "true"'
    return f"node {node.name} cannot save memory: {why}"


def why_changed(instance: VirtualMachineInstance, template_hash: str) -> str:
    """A guest goes on as what it was. Of a machine that is another one by now it could not."""
    known = instance.annotations.get(labels.TEMPLATE_HASH, "")
    if not known or known == template_hash:
        return ""
    said = "its template has changed since it was started, so it could not go on from its memory"
    return f"{said}: resume and restart it first, or take the change back"
