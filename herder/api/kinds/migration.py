"""VirtualMachineInstanceMigration: one wish to move one running guest, once (seed 001)."""

from __future__ import annotations

from typing import Annotated, Literal

from herder.api.kinds.base import Kind
from herder.api.kinds.migration_state import AppliedPolicy, MigrationProgress, MigrationState, PhaseTransition, PolicySettings
from herder.api.meta import Condition
from herder.api.views import Bytes, Labels, Rule, Time, Untyped, View, doc

MigrationPhase = Literal["Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded", "Failed"]
MigrationPriority = Literal["system-critical", "user-triggered", "system-maintenance"]

# Equality of whole specs is the one test by which CEL sees the untyped term as well.
UNCHANGED_SPEC = Rule("self == oldSelf", "spec is immutable: delete this migration (which cancels it) and create another")

TERM_DESCRIPTION = (
    "Leave this out unless this one migration must go to certain nodes: the scheduler finds a good node by itself. One"
    " NodeSelectorTerm (matchExpressions on node labels, matchFields on metadata.name), which a target must satisfy in addition to"
    " everything that the machine itself asks for: it can only narrow the choice, never widen it. Neither the machine nor later"
    " migrations are changed by it. A list with exactly one term is accepted as well."
)


class WantedMigration(View, frozen=True, kw_only=True):
    """The guest and where it may go: what a migration does, and what a MigrationReview asks about."""

    vmi_name: Annotated[str, doc("Name of the VirtualMachineInstance in the same namespace.", min_length=1, max_length=253)]
    added_node_selector_term: Annotated[Untyped, doc(TERM_DESCRIPTION)] = None
    added_node_selector: (
        Annotated[
            Labels,
            doc("Labels that the target node must have, in addition to everything that the machine itself asks for."),
        ]
        | None
    ) = None


class VirtualMachineInstanceMigrationSpec(WantedMigration, frozen=True, kw_only=True):
    """Which guest is moved, and what this one move asks for beyond what the machine asks for."""

    priority: (
        Annotated[
            MigrationPriority,
            doc("Who goes first when not all can: system-critical, then user-triggered, then system-maintenance, then unset."),
        ]
        | None
    ) = None


class VirtualMachineInstanceMigrationStatus(View, frozen=True, kw_only=True):
    """How the migration goes, and why."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status describes.")] | None = None
    phase: Annotated[MigrationPhase, doc("Where it is on its way.")] | None = None
    reason: Annotated[str, doc("One CamelCase word saying why it waits or failed.", max_length=1024)] | None = None
    message: (
        Annotated[str, doc("A sentence saying why it waits or failed, node by node where that helps.", max_length=32768)] | None
    ) = None
    conditions: Annotated[tuple[Condition, ...], doc("Observations.", max_length=64, list_keys=("type",))] | None = None
    phase_transition_timestamps: (
        Annotated[tuple[PhaseTransition, ...], doc("When each phase was reached.", max_length=32)] | None
    ) = None
    source_node: Annotated[str, doc("Node that the guest leaves.", max_length=253)] | None = None
    target_node: Annotated[str, doc("Node that the guest goes to.", max_length=253)] | None = None
    target_pod: Annotated[str, doc("Pod that was made for the guest to go to.", max_length=253)] | None = None
    migration_policy: Annotated[AppliedPolicy, doc("Policy that was chosen, and why.")] | None = None
    effective_settings: Annotated[PolicySettings, doc("Settings that this migration runs with, whatever changes later.")] | None = (
        None
    )
    progress: Annotated[MigrationProgress, doc("How far it has come.")] | None = None
    migration_state: Annotated[MigrationState, doc("Both ends and how it goes between them.")] | None = None
    start_timestamp: Annotated[Time, doc("When its turn came.", nullable=True)] | None = None
    end_timestamp: Annotated[Time, doc("When it was over.", nullable=True)] | None = None


class VirtualMachineInstanceMigration(Kind, frozen=True, kw_only=True):
    """A wish to move one running guest to another node, once."""

    spec: Annotated[
        VirtualMachineInstanceMigrationSpec, doc("What is wanted. It cannot be changed later.", rules=(UNCHANGED_SPEC,))
    ]
    status: Annotated[VirtualMachineInstanceMigrationStatus, doc("What is.")] | None = None
