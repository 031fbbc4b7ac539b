"""Where a pod may and should go. A first, small set of rules: room, labels, taints, cordons."""

from herder.rules.placement.place import Candidate, Placement, place

__all__ = ["Candidate", "Placement", "place"]
