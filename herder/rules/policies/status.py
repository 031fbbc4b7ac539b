"""What a MigrationPolicy says of itself: whether it is in use, and for how many instances that run."""

from __future__ import annotations

from herder.api import reasons
from herder.api.kinds.policy import MigrationPolicy
from herder.api.validation.settings import refinable_problems
from herder.rules.plans import Document, condition, plain, since, without_nothing
from herder.rules.policies.order import Unused
from herder.rules.policies.usage import Counts

# Of the sentences about settings that are wrong; there are few of them, and what they quote may be long.
LONGEST_MESSAGE = 4096


def policy_status(policy: MigrationPolicy, unused: Unused | None, counts: Counts, now: float) -> Document:
    """`unused`: why it applies to nothing, whatever runs."""
    known = policy.status.conditions if policy.status is not None else None
    return without_nothing(
        {
            "observedGeneration": policy.metadata.generation,
            "instances": counts.applied,
            "matchingInstances": counts.matching,
            "conditions": since([_accepted(policy, unused), _applied(unused, counts)], known, now),
        }
    )


def _accepted(policy: MigrationPolicy, unused: Unused | None) -> Document:
    if unused is not None:
        return condition(reasons.ACCEPTED, False, unused.reason, unused.why[:LONGEST_MESSAGE])
    wrong = "; ".join(str(problem) for problem in refinable_problems(plain(policy.spec) or {}, "spec"))
    if wrong:
        message = f"the cluster's value is used instead: {wrong}"[:LONGEST_MESSAGE]
        return condition(reasons.ACCEPTED, True, reasons.SETTINGS_NOT_USED, message)
    return condition(reasons.ACCEPTED, True, reasons.ACCEPTED, "the policy is in use")


def _applied(unused: Unused | None, counts: Counts) -> Document:
    if unused is not None:
        holds, reason, message = False, reasons.NOT_ACCEPTED, "the policy is not in use"
    elif counts.applied:
        holds, reason, message = True, reasons.APPLIED, "it is the first policy of running instances"
    elif counts.matching:
        message = "other policies go before it for every running instance that has its labels: see herder explain policy VMI"
        holds, reason = False, reasons.OTHER_POLICIES_FIRST
    else:
        holds, reason, message = False, reasons.NO_MATCHING_INSTANCE, "no running instance has all its labels"
    return condition(reasons.APPLIED, holds, reason, message)
