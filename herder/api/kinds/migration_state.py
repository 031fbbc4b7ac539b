"""What is known about one live migration while it goes on: settings, progress, both ends."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from herder.api.views import Bytes, Count, Quantity, Time, View, doc

MigrationMode = Literal["PreCopy", "PostCopy", "Paused"]


class PhaseTransition(View, frozen=True, kw_only=True):
    """When a phase was reached."""

    phase: Annotated[str, doc("The phase.", max_length=64)]
    phase_transition_timestamp: Annotated[Time, doc("When it was reached.")]


class PolicySettings(View, frozen=True, kw_only=True):
    """Settings of a migration that a MigrationPolicy may set. A field that is absent leaves what the level below says."""

    allow_auto_converge: (
        Annotated[bool, doc("Whether a guest that writes memory faster than it can be copied is slowed down. Default false.")]
        | None
    ) = None
    allow_post_copy: (
        Annotated[bool, doc("Whether the guest may go on at the target before all its memory is there. Default false.")] | None
    ) = None
    allow_workload_disruption: (
        Annotated[bool, doc("Whether the guest may be paused when its time is up. Default: the value of allowPostCopy.")] | None
    ) = None
    bandwidth_per_migration: (
        Annotated[Quantity, doc("Bytes per second that one migration may use, for example 64Mi; 0 is without limit. Default 0.")]
        | None
    ) = None
    completion_timeout_per_gib: (
        Annotated[Count, doc("Seconds that a migration may take per GiB of guest memory; 0 is without limit. Default 150.")] | None
    ) = field(default=None, name="completionTimeoutPerGiB")
    progress_timeout: (
        Annotated[Count, doc("Seconds without progress after which a migration is given up; 0 never. Default 150.")] | None
    ) = None
    max_downtime_ms: Annotated[Count, doc("Milliseconds that the guest may stand still at the hand-over. Default 300.")] | None = (
        None
    )


class AppliedPolicy(View, frozen=True, kw_only=True):
    """The MigrationPolicy that was chosen, and why it was."""

    name: Annotated[str, doc("Name of the policy; empty when none applies.", max_length=253)] | None = None
    uid: Annotated[str, doc("Identity of the policy.", max_length=128)] | None = None
    matched_labels: Annotated[Count, doc("How many labels of the machine and its namespace it matched.")] | None = None
    why: Annotated[str, doc("A sentence saying why this policy won, or why none applies.", max_length=4096)] | None = None


class MigrationProgress(View, frozen=True, kw_only=True):
    """How far a migration has come."""

    mode: Annotated[MigrationMode, doc("PreCopy, PostCopy or Paused.")] | None = None
    total_bytes: Annotated[Bytes, doc("Bytes of guest memory to be copied.")] | None = None
    transferred_bytes: Annotated[Bytes, doc("Bytes sent so far, repeats included.")] | None = None
    remaining_bytes: Annotated[Bytes, doc("Bytes still to be sent.")] | None = None
    dirty_bytes_per_second: Annotated[Bytes, doc("How fast the guest changes its memory.")] | None = None
    bytes_per_second: Annotated[Bytes, doc("How fast the memory is sent.")] | None = None
    iteration: Annotated[Count, doc("Round of the copy, from 1.")] | None = None
    throttle_percent: Annotated[int, doc("By how much the guest is slowed down.", ge=0, le=100, format="int32")] | None = None
    percent: Annotated[int, doc("How much is done; never runs backwards.", ge=0, le=100, format="int32")] | None = None
    estimated_seconds_left: Annotated[Bytes, doc("Seconds that it will still take, as far as one can tell.")] | None = None
    downtime_ms: Annotated[Bytes, doc("Milliseconds that the guest stood still, or would now.")] | None = None
    last_update_time: Annotated[Time, doc("When these numbers were taken.", nullable=True)] | None = None


class MigrationState(View, frozen=True, kw_only=True):
    """Both ends of a migration and how it goes between them."""

    migration_name: Annotated[str, doc("Name of the VirtualMachineInstanceMigration.", max_length=253)] | None = None
    migration_uid: Annotated[str, doc("Identity of the VirtualMachineInstanceMigration.", max_length=128)] | None = None
    migration_policy_name: Annotated[str, doc("Name of the policy that was chosen; empty for none.", max_length=253)] | None = None
    migration_configuration: Annotated[PolicySettings, doc("Settings that this migration runs with.")] | None = None
    source_node: Annotated[str, doc("Node that the guest leaves.", max_length=253)] | None = None
    source_pod: Annotated[str, doc("Pod that the guest leaves.", max_length=253)] | None = None
    target_node: Annotated[str, doc("Node that the guest goes to.", max_length=253)] | None = None
    target_pod: Annotated[str, doc("Pod that the guest goes to.", max_length=253)] | None = None
    target_node_address: Annotated[str, doc("Where the target waits for the source.", max_length=1024)] | None = None
    start_timestamp: Annotated[Time, doc("When the copy began.", nullable=True)] | None = None
    target_ready_timestamp: Annotated[Time, doc("When the target was ready to receive.", nullable=True)] | None = None
    handed_over_timestamp: Annotated[Time, doc("When the source gave the guest away for good.", nullable=True)] | None = None
    end_timestamp: Annotated[Time, doc("When it was over.", nullable=True)] | None = None
    mode: Annotated[MigrationMode, doc("PreCopy, PostCopy or Paused.")] | None = None
    post_copy_unavailable: (
        Annotated[str, doc("Why it goes on without post-copy although that is allowed.", max_length=32768)] | None
    ) = None
    progress: Annotated[MigrationProgress, doc("How far it has come.")] | None = None
    completed: Annotated[bool, doc("Whether it is over.")] | None = None
    failed: Annotated[bool, doc("Whether it ended without success.")] | None = None
    failure_reason: Annotated[str, doc("Why it ended without success, for people.", max_length=32768)] | None = None
    abort_requested: Annotated[bool, doc("Whether someone asked to cancel it.")] | None = None
    abort_status: Annotated[Literal["Aborting", "Succeeded", "Failed"], doc("What became of the wish to cancel it.")] | None = None
