"""When a Node that is being deleted may go without the word of its agent."""

from __future__ import annotations

from herder.api import labels, reasons
from herder.api.core import Node
from herder.rules.instances.observed import answers, fenced
from herder.rules.plans import Event


def plan_deletion(node: Node) -> Event | None:
    """What is told of it where the agent's finalizer is to be taken away; None where it is the agent's to do so."""
    if not node.being_deleted or labels.NODE_FINALIZER not in node.finalizers:
        return None
    if answers(node) and not fenced(node):
        # It ends its guests, and then lets go.
        return None
    message = f"node {node.name} is silent and was deleted: whoever does that vouches for it that nothing runs there any more"
    return Event("Warning", reasons.NODE_GIVEN_UP, message)
