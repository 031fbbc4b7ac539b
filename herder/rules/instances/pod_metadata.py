"""What a running launcher pod has because of others: the labels and annotations of its instance, and the label of its pool."""

from __future__ import annotations

import msgspec

from herder.api import labels
from herder.api.core import Pod
from herder.api.kinds import VirtualMachineInstance
from herder.rules.inheritance import Changes, metadata_changes, metadata_patch
from herder.rules.instances.launcher import given_to_pod
from herder.rules.instances.pods import has_ended
from herder.rules.instances.pool_label import label_change
from herder.rules.plans import Document


class PodPatch(msgspec.Struct, frozen=True):
    """A merge patch for one of an instance's pods."""

    name: str
    patch: Document


def pod_patches(instance: VirtualMachineInstance, pods: tuple[Pod, ...], pod: Pod | None, pool: str | None) -> tuple[PodPatch, ...]:
    """`pod` is the one that has the guest. Targets of migrations are made with what there is, and get the rest once they have it.

    The pool's label is taken from all others first: who counts the pods of a pool may miss a guest for a moment, and never counts
    one twice.
    """
    lost: Changes = {labels.POOL: None}
    others = [one for one in pods if one is not pod and labels.POOL in one.labels]
    losing = tuple(PodPatch(one.name, metadata_patch(lost, {})) for one in others)
    patch = _patch(instance, pod, pool) if pod is not None and not pod.being_deleted else {}
    return (*losing, PodPatch(pod.name, patch)) if pod is not None and patch else losing


def _patch(instance: VirtualMachineInstance, pod: Pod, pool: str | None) -> Document:
    """One that has ended is kept for its log, and inherits nothing more."""
    label = label_change(pod, pool)
    if has_ended(pod):
        return metadata_patch(label, {})
    inherited_labels, annotations = metadata_changes(pod, given_to_pod(instance.labels, instance.annotations))
    return metadata_patch({**inherited_labels, **label}, annotations)
