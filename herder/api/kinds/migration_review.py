"""MigrationReview: a question about one migration that is not made. It is answered once, by who may read all that decides."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from herder.api.kinds.base import Kind
from herder.api.kinds.migration import WantedMigration
from herder.api.kinds.migration_state import AppliedPolicy, PolicySettings
from herder.api.meta import Condition
from herder.api.views import Bytes, Count, Rule, View, doc

# Schedulable: a node would take it now. Unschedulable: it would wait, and something may pass. Impossible: it would fail at once.
# NotMigratable: it would be refused, wherever it should go.
ReviewOutcome = Literal["Schedulable", "Unschedulable", "Impossible", "NotMigratable"]
# Rows that a status shows of nodes, and of policies; the others are counted.
MOST_ROWS: Final = 100
LONGEST_WHY: Final = 1024

UNCHANGED_SPEC = Rule("self == oldSelf", "spec is immutable: a review is answered once; create another")


class MigrationReviewSpec(WantedMigration, frozen=True, kw_only=True):
    """The migration that is asked about, in the words of VirtualMachineInstanceMigration."""


class ReviewedNode(View, frozen=True, kw_only=True):
    """Whether one node would take the guest now."""

    name: Annotated[str, doc("Name of the node.", max_length=253)]
    fits: Annotated[bool, doc("Whether it would take the guest.")]
    why: Annotated[str, doc("Why not.", max_length=LONGEST_WHY)] | None = None


class ReviewedPolicy(View, frozen=True, kw_only=True):
    """One MigrationPolicy that could apply in this namespace."""

    name: Annotated[str, doc("Name of the policy.", max_length=253)]
    applies: Annotated[bool, doc("Whether it is the one that counts.")]
    matches: Annotated[bool, doc("Whether all its labels are there; of several that match one applies.")]
    labels: Annotated[Count, doc("How many labels it asks for.")]
    why: Annotated[str, doc("Why it applies, or why not.", max_length=LONGEST_WHY)] | None = None


class ReviewedSetting(View, frozen=True, kw_only=True):
    """Who decided one of the effective settings."""

    setting: Annotated[str, doc("Name of the setting, as in effectiveSettings.", max_length=64)]
    source: Annotated[str, doc("MigrationPolicy NAME, KubeVirt, or built in.", max_length=300)]


class MigrationReviewStatus(View, frozen=True, kw_only=True):
    """The answer, as things were when it was given."""

    observed_generation: Annotated[Bytes, doc("Generation of the spec that this status answers.")] | None = None
    conditions: (
        Annotated[
            tuple[Condition, ...],
            doc("Answered: True with the answer, False where there is none, and why.", max_length=64, list_keys=("type",)),
        ]
        | None
    ) = None
    outcome: Annotated[ReviewOutcome, doc("What would become of such a migration.")] | None = None
    reason: Annotated[str, doc("Where it is Impossible or NotMigratable: why, in one word.", max_length=1024)] | None = None
    message: Annotated[str, doc("The same in a sentence.", max_length=32768)] | None = None
    target_node: Annotated[str, doc("Node that the scheduler would take; empty where there is none.", max_length=253)] | None = None
    summary: Annotated[str, doc("All nodes in one sentence.", max_length=32768)] | None = None
    unschedulable_pending_timeout: (
        Annotated[Count, doc("Seconds that a migration waits for a node, where none would take it now.")] | None
    ) = None
    nodes: (
        Annotated[tuple[ReviewedNode, ...], doc("Those that would take the guest, best first, then others.", max_length=MOST_ROWS)]
        | None
    ) = None
    other_nodes: Annotated[Count, doc("How many nodes are not listed.")] | None = None
    migration_policy: Annotated[AppliedPolicy, doc("Policy that applies, and why.")] | None = None
    policies: (
        Annotated[
            tuple[ReviewedPolicy, ...],
            doc("Policies that could apply in this namespace, in their order.", max_length=MOST_ROWS),
        ]
        | None
    ) = None
    other_policies: Annotated[Count, doc("How many policies are not listed: those of other namespaces, and too many.")] | None = (
        None
    )
    effective_settings: Annotated[PolicySettings, doc("Settings that such a migration would run with.")] | None = None
    setting_sources: (
        Annotated[tuple[ReviewedSetting, ...], doc("Who decided each of them.", max_length=64, list_keys=("setting",))] | None
    ) = None


class MigrationReview(Kind, frozen=True, kw_only=True):
    """A question about a migration: where could it go, with which settings, and why? Nothing is moved."""

    spec: Annotated[MigrationReviewSpec, doc("What is asked. It cannot be changed later.", rules=(UNCHANGED_SPEC,))]
    status: Annotated[MigrationReviewStatus, doc("The answer.")] | None = None
