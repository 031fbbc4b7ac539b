"""Where a pod may and should go: one module per rule, all nodes at once, in the words of kube-scheduler."""

from herder.rules.placement.access import Access
from herder.rules.placement.cordon import Cordon
from herder.rules.placement.decide import Decision, decide, message, still_fits
from herder.rules.placement.events import Event, What, node_event
from herder.rules.placement.host_ports import HostPorts
from herder.rules.placement.named_nodes import NamedNodes
from herder.rules.placement.needs import Needs, needs_of
from herder.rules.placement.node_affinity import NodeAffinity
from herder.rules.placement.node_name import NodeName
from herder.rules.placement.nodes import Offer
from herder.rules.placement.pod_affinity import PodAffinity
from herder.rules.placement.resources import SCORINGS, Resources, Scoring
from herder.rules.placement.rule import Rule
from herder.rules.placement.snapshot import Snapshot
from herder.rules.placement.spread import TopologySpread
from herder.rules.placement.taints import Taints
from herder.rules.placement.volumes import Volumes

# What the node itself says: asked once more before a pod is bound there.
OF_THE_NODE: tuple[Rule, ...] = (NamedNodes(), Cordon(), NodeName(), Taints(), NodeAffinity())


def rules_with(scoring: Scoring) -> tuple[Rule, ...]:
    """In the order of kube-scheduler: the first that says no is the reason. A rule more is a line more."""
    return (
        *OF_THE_NODE,
        HostPorts(),
        Resources(scoring),
        Access(),
        Volumes(),
        TopologySpread(),
        PodAffinity(),
    )


RULES: tuple[Rule, ...] = rules_with("LeastAllocated")

__all__ = [
    "OF_THE_NODE",
    "RULES",
    "SCORINGS",
    "Decision",
    "Event",
    "Needs",
    "Offer",
    "Rule",
    "Scoring",
    "Snapshot",
    "What",
    "decide",
    "message",
    "needs_of",
    "node_event",
    "rules_with",
    "still_fits",
]
