"""Finds the migrations of an instance; for all controllers that need to know of them."""

from __future__ import annotations

from herder.api.kinds import VirtualMachineInstanceMigration
from herder.kube.cache import Index


def instance_of(namespace: str, name: str) -> str:
    """How BY_INSTANCE wants to be asked."""
    return f"{namespace}/{name}"


# Finished ones too.
BY_INSTANCE: Index[VirtualMachineInstanceMigration] = Index(
    "vmi", lambda stored: (instance_of(stored.key.namespace, stored.view.spec.vmi_name),)
)
