"""What a launcher pod has because of others, while it runs: the labels and annotations of its instance."""

from __future__ import annotations

import msgspec

from herder.api.core import Pod
from herder.api.kinds import VirtualMachineInstance
from herder.rules.inheritance import metadata_changes, metadata_patch
from herder.rules.instances.launcher import given_to_pod
from herder.rules.instances.pods import has_ended
from herder.rules.plans import Document


class PodPatch(msgspec.Struct, frozen=True):
    """A merge patch for one of an instance's pods."""

    name: str
    patch: Document


def pod_patches(instance: VirtualMachineInstance, pod: Pod) -> tuple[PodPatch, ...]:
    """For the pod that has the guest. Targets of migrations are made with what there is, and get the rest once they have it."""
    if pod.being_deleted or has_ended(pod):
        return ()
    patch = metadata_patch(*metadata_changes(pod, given_to_pod(instance.labels, instance.annotations)))
    return (PodPatch(pod.name, patch),) if patch else ()
