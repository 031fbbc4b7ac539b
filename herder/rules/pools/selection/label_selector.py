"""labelSelector: machines with these labels."""

from __future__ import annotations

from herder.api.kinds.pool import OrderedPolicy
from herder.api.selectors import selector_from_object
from herder.rules.plans import plain
from herder.rules.pools.selection.inputs import Inputs, Matches


def matches(policy: OrderedPolicy, inputs: Inputs) -> Matches:
    """One that cannot be read fits nobody: admission refuses it, but on a cluster without our webhook it may be there."""
    try:
        selector = selector_from_object(plain(policy.label_selector))
    except ValueError:
        return lambda _: False
    return lambda member: selector.matches(member.labels)
