"""The answer to a MigrationReview: what `herder explain policy` and `herder explain target` say, for those who may not read what
these read.

It tells names of nodes and why each would not do, as the message of a failed migration does, and nothing of what else runs there:
no scores, which follow from the load of a node, and no policies that select other namespaces, which may name them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from herder.api import reasons
from herder.api.kinds import MigrationReview, VirtualMachineInstance
from herder.api.kinds.migration_review import (
    LONGEST_WHY,
    MOST_ROWS,
    MigrationReviewStatus,
    ReviewedNode,
    ReviewedPolicy,
    ReviewedSetting,
    ReviewOutcome,
)
from herder.api.kinds.migration_state import AppliedPolicy, PolicySettings
from herder.api.problems import shortened
from herder.api.registry import REVIEW
from herder.api.validation import problems_of
from herder.rules.admission import not_movable
from herder.rules.configuration import ClusterMigrationSettings
from herder.rules.migration.explain import MigrationExplanation, explain_migration, not_migratable
from herder.rules.placement import Snapshot
from herder.rules.plans import Document, condition, find, moment, plain, since
from herder.rules.policies import Policies, PolicyExplanation, PolicyRow, SettingRow, explain_policy_within
from herder.rules.targets import Impossible, TargetRow, added_by

# A review is a question, and nobody looks at it again: seconds until it is cleared away, answered or not.
LIFETIME: Final = 300.0


class Cluster(msgspec.Struct, frozen=True, eq=False):
    """All that decides and that is in no namespace, or in all of them."""

    policies: Policies
    settings: ClusterMigrationSettings
    snapshot: Snapshot


class Reviewed(msgspec.Struct, frozen=True):
    """The instance that a review asks about: as a view, as it is written, and the labels of its namespace."""

    instance: VirtualMachineInstance
    document: Document
    namespace_labels: Mapping[str, str]


def is_answered(review: MigrationReview) -> bool:
    """Whether there is, or will be, no other answer than what its status says."""
    return find(review.status.conditions if review.status else None, reasons.ANSWERED) is not None


def seconds_left(review: MigrationReview, now: float) -> float:
    """Until it is cleared away; never below zero."""
    made_at = review.metadata.creation_timestamp
    return max(0.0, LIFETIME - (moment(now) - made_at).total_seconds()) if made_at is not None else LIFETIME


def invalid(review: MigrationReview) -> str:
    """What is wrong with the question; empty where nothing is. Asked before anything is looked up: admission refuses such a
    review, but not every cluster asks us, and the name in it is somebody's text."""
    problems = problems_of({"apiVersion": REVIEW.api_version, "kind": REVIEW.kind, "spec": plain(review.spec)})
    return shortened("; ".join(str(problem) for problem in problems))


def answer(review: MigrationReview, reviewed: Reviewed | None, cluster: Cluster, now: float) -> Document:
    """The status of a review that is not `invalid`. `reviewed`: None where there is no such instance."""
    if reviewed is None:
        said = f"there is no VirtualMachineInstance {review.spec.vmi_name!r} in namespace {review.namespace!r}"
        return refused(review, reasons.VMI_NOT_FOUND, said, now)
    instance, around = reviewed.instance, reviewed.namespace_labels
    target = explain_migration(instance, reviewed.document, added_by(review.spec), cluster.snapshot, cluster.settings)
    policy = explain_policy_within(instance, around, cluster.policies, cluster.settings, MOST_ROWS)
    applied = cluster.policies.chosen(instance.labels, around).applied()
    return {
        **_status(review, True, reasons.ANSWERED, "", now),
        **_of_target(instance, target),
        **_of_policy(applied, policy),
    }


def refused(review: MigrationReview, reason: str, message: str, now: float) -> Document:
    """There is no answer, and will be none to this review."""
    return _status(review, False, reason, message, now)


def _status(review: MigrationReview, answered: bool, reason: str, message: str, now: float) -> Document:
    made = condition(reasons.ANSWERED, answered, reason, message)
    return {"observedGeneration": review.metadata.generation or 0, "conditions": since([made], None, now)}


def _of_target(instance: VirtualMachineInstance, found: MigrationExplanation) -> Document:
    outcome, reason, message = _outcome(instance, found)
    rows = [ReviewedNode(name=row.node, fits=row.fits, why=_cut(row.why)) for row in found.nodes[:MOST_ROWS]]
    status = MigrationReviewStatus(
        outcome=outcome,
        reason=reason or None,
        message=message or None,
        target_node=found.target_node or None,
        summary=found.summary,
        nodes=tuple(rows),
        other_nodes=len(found.nodes) - len(rows),
        unschedulable_pending_timeout=found.pending_timeout_seconds,
    )
    return plain(status) or {}


def _outcome(instance: VirtualMachineInstance, found: MigrationExplanation) -> tuple[ReviewOutcome, str, str]:
    problems = not_movable(instance)
    if problems:
        return "NotMigratable", reasons.NOT_LIVE_MIGRATABLE, "; ".join(str(one) for one in problems)
    if found.impossible is not None:
        return "Impossible", found.impossible.reason, found.impossible.message
    return ("Schedulable" if found.target_node else "Unschedulable"), "", ""


def _of_policy(applied: AppliedPolicy, found: PolicyExplanation) -> Document:
    rows = [
        ReviewedPolicy(name=row.name, applies=row.applies, matches=row.matches, labels=row.labels, why=_cut(row.why))
        for row in found.policies
    ]
    sources = [ReviewedSetting(setting=row.name, source=row.source) for row in found.settings]
    status = MigrationReviewStatus(
        migration_policy=applied,
        policies=tuple(rows),
        other_policies=found.other_policies,
        setting_sources=tuple(sources),
    )
    return {**(plain(status) or {}), "effectiveSettings": {row.name: row.value for row in found.settings}}


def _cut(why: str) -> str | None:
    return shortened(why, LONGEST_WHY - 1) or None


# An answer, as the values that it was made from, as far as it tells them.


def explained_policy(
    instance: VirtualMachineInstance, namespace_labels: Mapping[str, str] | None, status: MigrationReviewStatus
) -> PolicyExplanation:
    policy = status.migration_policy or AppliedPolicy()
    values: Document = msgspec.to_builtins(status.effective_settings or PolicySettings())
    return PolicyExplanation(
        namespace=instance.namespace,
        name=instance.name,
        labels=instance.labels,
        namespace_labels=namespace_labels,
        policy=policy.name or None,
        why=policy.why or "",
        policies=tuple(PolicyRow(row.name, row.applies, row.matches, row.labels, row.why or "") for row in status.policies or ()),
        settings=tuple(SettingRow(row.setting, values.get(row.setting), row.source) for row in status.setting_sources or ()),
        other_policies=status.other_policies or 0,
    )


def explained_migration(instance: VirtualMachineInstance, status: MigrationReviewStatus) -> MigrationExplanation:
    return MigrationExplanation(
        namespace=instance.namespace,
        name=instance.name,
        node_name=(instance.status.node_name if instance.status is not None else None) or "",
        not_migratable=not_migratable(instance),
        target_node=status.target_node or "",
        summary=status.summary or "",
        impossible=Impossible(status.reason or "", status.message or "") if status.outcome == "Impossible" else None,
        pending_timeout_seconds=status.unschedulable_pending_timeout or 0,
        nodes=tuple(TargetRow(row.name, row.fits, row.why or "") for row in status.nodes or ()),
        other_nodes=status.other_nodes or 0,
    )
