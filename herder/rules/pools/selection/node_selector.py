"""nodeSelector: machines that run on a node with all these labels."""

from __future__ import annotations

from herder.api.kinds.pool import OrderedPolicy
from herder.api.selectors import selector_from_labels
from herder.rules.pools.selection.inputs import Inputs, Matches


def matches(policy: OrderedPolicy, inputs: Inputs) -> Matches:
    selector = selector_from_labels(policy.node_selector)
    # Thousands of machines run on few nodes.
    fitting = frozenset(name for name, node in inputs.nodes.items() if selector.matches(node.labels))
    return lambda member: member.node in fitting
