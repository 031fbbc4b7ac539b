"""What a launcher pod tells its node, and what the node tells back.

The definition stands in an annotation of the pod: the node then needs to read nothing but its own pods and what they mount, and
what runs cannot change under it. The report stands in a condition of the pod's status: the one thing that a node may write.
"""

from __future__ import annotations

import datetime
from typing import Literal

import msgspec

from herder.api.core import Pod
from herder.api.kinds.instance import StartedCPU, VirtualMachineInstanceSpec
from herder.api.kinds.migration_state import MigrationProgress, PolicySettings
from herder.api.labels import GUEST, GUEST_CONDITION
from herder.api.views import View

GuestState = Literal["Preparing", "Incoming", "Running", "Paused", "HandedOver", "ShutDown", "Crashed", "Failed"]
ENDED: tuple[GuestState, ...] = ("HandedOver", "ShutDown", "Crashed", "Failed")


class Owner(View, frozen=True, kw_only=True):
    """The instance that the guest is of."""

    namespace: str
    name: str
    uid: str


class Started(View, frozen=True, kw_only=True):
    """What the guest was started as, resolved: a migration target must be the same."""

    machine_type: str = ""
    accelerator: str = ""
    runtime: str = ""
    cpu: StartedCPU | None = None
    memory_bytes: int = 0


class GuestDefinition(View, frozen=True, kw_only=True):
    """Written by the controller into the pod, once."""

    instance: Owner
    spec: VirtualMachineInstanceSpec
    # Set on a migration target: be exactly this, and wait for the guest to come in.
    incoming: Started | None = None
    # `simulated.herder.dev/…` annotations of the instance, without the prefix.
    simulated: dict[str, str] = msgspec.field(default_factory=dict)


class MigrationReport(View, frozen=True, kw_only=True):
    """How the migration goes, as one side sees it."""

    migration_uid: str = ""
    address: str = ""
    settings: PolicySettings | None = None
    progress: MigrationProgress | None = None
    completed: bool = False
    failed: str = ""


class GuestReport(View, frozen=True, kw_only=True):
    """Written by the agent into the pod's status."""

    state: GuestState
    reason: str = ""
    message: str = ""
    started: Started | None = None
    started_at: datetime.datetime | None = None
    # Whether the first liveness probe has passed, where there is one.
    alive: bool | None = None
    addresses: tuple[str, ...] = ()
    migratable: bool = True
    not_migratable_because: str = ""
    migration: MigrationReport | None = None


def definition_of(pod: Pod) -> GuestDefinition | None:
    """None for a pod that is no launcher; raises msgspec's error where the annotation cannot be read."""
    text = pod.annotations.get(GUEST)
    return msgspec.json.decode(text, type=GuestDefinition) if text else None


def report_of(pod: Pod) -> GuestReport | None:
    """The last thing that the agent said; None where it said nothing yet, or nothing that can be read."""
    for condition in pod.status.conditions:
        if condition.type == GUEST_CONDITION and condition.message:
            try:
                return msgspec.json.decode(condition.message, type=GuestReport)
            except msgspec.MsgspecError:
                return None
    return None
