"""Nodes that fall silent, and what becomes of their pods. Only for the embedded engine: a real cluster has it already."""

from herder.controllers.node_lifecycle.nodes import NodeHealth
from herder.controllers.node_lifecycle.outages import Outages
from herder.controllers.node_lifecycle.pods import LostPods
from herder.kube.kit import Start
from herder.rules.node_lifecycle import Patience


def node_lifecycle(patience: Patience | None = None) -> tuple[Start, ...]:
    return (NodeHealth.with_patience(patience or Patience()), Outages.start, LostPods.start)


NODE_LIFECYCLE: tuple[Start, ...] = node_lifecycle()

__all__ = ["NODE_LIFECYCLE", "LostPods", "NodeHealth", "Outages", "node_lifecycle"]
