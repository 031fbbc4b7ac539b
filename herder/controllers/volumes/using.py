"""Which pods use which claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from herder.api import labels
from herder.api.core import Pod
from herder.kube.cache import Index, Stored

FINISHED = ("Succeeded", "Failed")


def claim_value(namespace: str, name: str) -> str:
    return f"{namespace}/{name}"


def _claims(stored: Stored[Pod]) -> Iterable[str]:
    named = [volume.persistent_volume_claim for volume in stored.view.spec.volumes]
    return [claim_value(stored.key.namespace, one.claim_name) for one in named if one is not None]


BY_CLAIM: Index[Any] = Index("claim", _claims)


def writer_of(pods: Iterable[Pod], claim: str) -> str:
    """A pod that may change what the claim holds while it is copied. Those that copy it, or fill it, are ours to order."""
    for pod in pods:
        if pod.status.phase not in FINISHED and labels.IMPORT not in pod.annotations and _may_write(pod, claim):
            return pod.name
    return ""


def _may_write(pod: Pod, claim: str) -> bool:
    named = [volume.persistent_volume_claim for volume in pod.spec.volumes]
    return any(one.claim_name == claim and not one.read_only for one in named if one is not None)
