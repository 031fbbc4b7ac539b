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
from herder.api.labels import GUEST, GUEST_CONDITION, MIGRATION
from herder.api.views import View

GuestState = Literal["Preparing", "Incoming", "Running", "Paused", "HandedOver", "Saved", "ShutDown", "Crashed", "Failed"]
# Before it runs: it has passed no probe.
NOT_YET: tuple[GuestState, ...] = ("Preparing", "Incoming")
ENDED: tuple[GuestState, ...] = ("HandedOver", "Saved", "ShutDown", "Crashed", "Failed")


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


class SavedGuest(View, frozen=True, kw_only=True):
    """Memory that was saved: what a guest has to be to go on from it. Said by the node that saved it."""

    started: Started
    # Of the runtime.
    version: str = ""
    bytes: int = 0
    # It stood still by its owner's wish when it was saved, and does so again.
    paused: bool = False
    # Of a simulated guest all of its memory. That of a real one is in its claim.
    content: str = ""


class MemorySource(View, frozen=True, kw_only=True):
    """Where a guest goes on from that was saved before."""

    claim: str  # in the pod's namespace
    # uid of the pod whose guest it was: a file of another one is not it.
    pod: str
    saved: SavedGuest


class GuestDefinition(View, frozen=True, kw_only=True):
    """Written by the controller into the pod, once."""

    instance: Owner
    spec: VirtualMachineInstanceSpec
    # Set on a migration target: be exactly this, and wait for the guest to come in.
    incoming: Started | None = None
    # Go on from there if that can be done, else boot.
    memory: MemorySource | None = None
    # `simulated.herder.dev/…` annotations of the instance, without the prefix.
    simulated: dict[str, str] = msgspec.field(default_factory=dict)
    # Whether cloud-init takes changed user data for that of another machine, and does again what it does once.
    cloud_init_again: bool = False


class MigrationOrder(View, frozen=True, kw_only=True):
    """Written by the migration controller: into the target pod when it is made, into the source pod when the target waits."""

    migration: str  # uid
    settings: PolicySettings
    # For the target only: whose agent alone may speak for the guest.
    source_node: str = ""
    # The rest is for the source only.
    target_pod: str = ""  # uid
    target_node: str = ""
    address: str = ""
    cancelled: bool = False


class MigrationReport(View, frozen=True, kw_only=True):
    """How the migration goes, as one side sees it."""

    migration: str
    # Target: where its agent waits for the source's.
    address: str = ""
    progress: MigrationProgress | None = None
    # Source: it gave the guest away for good, and has noted so on its disk.
    handed_over: bool = False
    # Source: what it met and tries again.
    trouble: str = ""
    # Target: why the guest cannot come by post-copy, although that is allowed.
    no_post_copy: str = ""
    # Target: whatever the guest needs to run has come.
    has_memory: bool = False
    # Target: the guest runs here, with its source's leave.
    taken_over: bool = False
    # Source: nothing is left to be sent; after post-copy only then may it go.
    completed: bool = False
    # It is over, and nobody was moved: one word of `herder.api.reasons`, and a sentence.
    failed: str = ""
    message: str = ""


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
    # Of one that was to go on from saved memory: whether it did, or why it booted.
    resumed: bool = False
    not_resumed_because: str = ""


def definition_of(pod: Pod) -> GuestDefinition | None:
    """None for a pod that is no launcher; raises msgspec's error where the annotation cannot be read."""
    text = pod.annotations.get(GUEST)
    return msgspec.json.decode(text, type=GuestDefinition) if text else None


def order_of(pod: Pod) -> MigrationOrder | None:
    """None where there is none, or none that can be read: then it is as if nobody had asked."""
    text = pod.annotations.get(MIGRATION)
    try:
        return msgspec.json.decode(text, type=MigrationOrder) if text else None
    except msgspec.MsgspecError:
        return None


def report_of(pod: Pod) -> GuestReport | None:
    """The last thing that the agent said; None where it said nothing yet, or nothing that can be read."""
    for condition in pod.status.conditions:
        if condition.type == GUEST_CONDITION and condition.message:
            try:
                return msgspec.json.decode(condition.message, type=GuestReport)
            except msgspec.MsgspecError:
                return None
    return None
