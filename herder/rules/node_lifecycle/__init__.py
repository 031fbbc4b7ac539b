"""What becomes of nodes that fall silent, and of their pods: as Kubernetes' node lifecycle, taint eviction and garbage collection
of pods decide it, with their numbers and their words."""

from herder.rules.node_lifecycle.health import NodePlan, Patience, is_settled, last_heartbeat, plan_node
from herder.rules.node_lifecycle.outages import OutagePlan, plan_outages
from herder.rules.node_lifecycle.pods import PodPlan, plan_pod, troubles
from herder.rules.node_lifecycle.taints import readiness, with_emptying, without_emptying

__all__ = [
    "NodePlan",
    "OutagePlan",
    "Patience",
    "PodPlan",
    "is_settled",
    "last_heartbeat",
    "plan_node",
    "plan_outages",
    "plan_pod",
    "readiness",
    "troubles",
    "with_emptying",
    "without_emptying",
]
